"""Computes the loads that a placement gives to its destinations: tasks, executors or instances."""

import numpy as np
from numpy.typing import NDArray

from penstock.planning.compiled import compiled

Loads = NDArray[np.float64]
Placement = NDArray[np.int32]


@compiled
def loads(destination: Placement | NDArray[np.int64], cost: Loads, destinations: int) -> Loads:
    """Sum the cost of the items at each destination.

    Parameters
    ----------
    destination
        Destination of each item, from 0; shape ``(items,)``.
    cost
        Cost of each item, in any unit; shape ``(items,)``.
    destinations
        Number of destinations.

    Returns
    -------
    NDArray
        Load of each destination; shape ``(destinations,)``.
    """
    total = np.zeros(destinations)
    for item in range(len(destination)):
        total[destination[item]] += cost[item]
    return total


def imbalance(load: Loads) -> float:
    """Return Elasticutor's delta (section 3.1): the largest load over the mean, or 1 if there is no load."""
    mean = load.mean()
    return float(load.max() / mean) if mean > 0 else 1.0


def deviation(load: Loads) -> float:
    """Return theta of Fang et al. (section 2.1): the largest distance from the mean, over the mean.

    Underload counts like overload. Section 5 of the paper speaks of the largest over the smallest load, but its
    formulas do not bound that.
    """
    mean = load.mean()
    return float(np.abs(load - mean).max() / mean) if mean > 0 else 0.0
