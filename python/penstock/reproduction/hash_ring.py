"""Consistent hashing (Karger et al. 1997), by which Fang et al. route keys that are not in their table."""

import numpy as np

from penstock.planning.load import Placement
from penstock.planning.spark_hash import hash_ints

POINTS = 100


def place(keys: int, instances: int, seed: int, points: int = POINTS) -> Placement:
    """Place each key at the instance whose point follows the key on the ring.

    An additional instance takes keys from the others, and all other keys keep their place.

    Parameters
    ----------
    keys, instances
        Number of keys and of instances.
    seed
        Seed of the hash.
    points
        Number of points of each instance on the ring. With more points, instances have more equal parts of the ring.

    Returns
    -------
    NDArray
        Instance of each key, shape ``(keys,)``.
    """
    point = hash_ints(np.arange(instances * points, dtype=np.int32), seed)
    owner = np.repeat(np.arange(instances, dtype=np.int32), points)
    order = np.argsort(point, kind="stable")
    # Keys and points are hashed with different seeds, because otherwise key n would have the position of point n.
    position = np.searchsorted(point[order], hash_ints(np.arange(keys, dtype=np.int32), ~seed))
    return owner[order][position % len(order)]
