"""Fast sorting of keys by weight. Weights have single precision, and ties go to the lower key number."""

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.int64]

_LARGEST = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def order_bits(weight: NDArray[np.float32]) -> NDArray[np.uint32]:
    """Return integers that sort like the weights, which must not be negative."""
    return weight.view(np.uint32)


def heaviest_first(keys: Keys, bits: NDArray[np.uint32]) -> Keys:
    """Sort keys by decreasing weight.

    Weight and key are packed into one word, so that NumPy sorts with vector instructions, which is faster than
    `argsort`.

    Parameters
    ----------
    keys
        Numbers of the keys, below ``2 ** 32``.
    bits
        `order_bits` of the keys' weights; same shape.
    """
    words = ((_LARGEST - bits.astype(np.uint64)) << _HALF) | keys.astype(np.uint64)
    words.sort()
    return (words & _LARGEST).astype(np.int64)
