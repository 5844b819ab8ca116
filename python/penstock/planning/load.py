"""What a placement means for the load of its destinations: tasks, executors or instances."""

import numpy as np
from numpy.typing import NDArray

from penstock.planning.compiled import compiled

Loads = NDArray[np.float64]
Placement = NDArray[np.int32]


@compiled
def loads(destination: Placement | NDArray[np.int64], cost: Loads, destinations: int) -> Loads:
    """Sum up the cost of what each destination has.

    Parameters
    ----------
    destination
        Of each item, from 0; shape ``(items,)``.
    cost
        Of each item, in any unit; shape ``(items,)``.
    destinations
        Their number.

    Returns
    -------
    NDArray
        Load of each destination, shape ``(destinations,)``.
    """
    total = np.zeros(destinations)
    for item in range(len(destination)):
        total[destination[item]] += cost[item]
    return total


def imbalance(load: Loads) -> float:
    """Give Elasticutor's delta (section 3.1): the largest load over the mean. 1 where there is no load."""
    mean = load.mean()
    return float(load.max() / mean) if mean > 0 else 1.0


def deviation(load: Loads) -> float:
    """Give Fang et al.'s theta (section 2.1): the largest distance from the mean, over the mean.

    Underload counts as overload does. Section 5 of the paper speaks of the largest over the smallest load, which is not
    what its formulas bound.
    """
    mean = load.mean()
    return float(np.abs(load - mean).max() / mean) if mean > 0 else 0.0
