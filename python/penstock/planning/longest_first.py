"""Longest processing time first (Graham 1969): what bounds the imbalance of Fang et al.'s plans."""

import numpy as np

from penstock.planning.compiled import compiled
from penstock.planning.load import Loads, Placement
from penstock.planning.sorting import Keys, heaviest_first, order_bits


def longest_first(cost: Loads, destinations: int) -> Placement:
    """Place items by falling cost, each where the load is least.

    Parameters
    ----------
    cost
        Of each item, not negative; shape ``(items,)``.
    destinations
        Their number.

    Returns
    -------
    NDArray
        Destination of each item. The largest load is at most ``4/3 - 1/(3 * destinations)`` of the least possible:
        where a perfect balance exists, it is within `bound` of the mean. Costs are ordered in single precision, in
        which those that differ less count as equal.
    """
    order = heaviest_first(np.arange(len(cost)), order_bits(np.asarray(cost, dtype=np.float32)))
    return _place(order, cost, destinations)


def bound(destinations: int) -> float:
    """Give Theorem 1 of Fang et al.: no load is further from the mean if a perfect balance exists."""
    return (1.0 - 1.0 / destinations) / 3.0


@compiled
def _place(order: Keys, cost: Loads, destinations: int) -> Placement:
    placed = np.empty(len(cost), dtype=np.int32)
    load = np.zeros(destinations)
    for item in order:
        least = load.argmin()
        placed[item] = least
        load[least] += cost[item]
    return placed
