"""Consistent hashing (Karger et al. 1997): what Fang et al. route by where their table says nothing."""

import numpy as np

from penstock.planning.load import Placement
from penstock.planning.spark_hash import hash_ints

POINTS = 100


def place(keys: int, instances: int, seed: int, points: int = POINTS) -> Placement:
    """Give each key the instance whose point follows its own on the ring.

    A further instance takes keys from the others and leaves all other keys where they are.

    Parameters
    ----------
    keys, instances
        Their numbers.
    seed
        Of the hash.
    points
        Of each instance on the ring: more of them make the parts of the ring more equal.

    Returns
    -------
    NDArray
        Instance of each key, shape ``(keys,)``.
    """
    point = hash_ints(np.arange(instances * points, dtype=np.int32), seed)
    owner = np.repeat(np.arange(instances, dtype=np.int32), points)
    order = np.argsort(point, kind="stable")
    # Keys and points are hashed by different seeds: else key n would lie on point n.
    at = np.searchsorted(point[order], hash_ints(np.arange(keys, dtype=np.int32), ~seed))
    return owner[order][at % len(order)]
