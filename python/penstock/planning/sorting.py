"""Orders of keys by a weight, fast: weights in single precision, ties by the number of the key."""

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.int64]

_LARGEST = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def order_bits(weight: NDArray[np.float32]) -> NDArray[np.uint32]:
    """Give numbers that are in the order of the weights, which must not be negative."""
    return weight.view(np.uint32)


def heaviest_first(keys: Keys, bits: NDArray[np.uint32]) -> Keys:
    """Sort keys by falling weight.

    Weight and key share a word, so that it is sorted with vector instructions; `argsort` is slower.

    Parameters
    ----------
    keys
        Below ``2 ** 32``.
    bits
        Of their weights, see `order_bits`; same shape.
    """
    words = ((_LARGEST - bits.astype(np.uint64)) << _HALF) | keys.astype(np.uint64)
    words.sort()
    return (words & _LARGEST).astype(np.int64)
