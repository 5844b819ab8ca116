"""Longest processing time first (Graham 1969), which bounds the imbalance of the plans of Fang et al."""

import numpy as np

from penstock.planning.compiled import compiled
from penstock.planning.load import Loads, Placement
from penstock.planning.sorting import Keys, heaviest_first, order_bits


def longest_first(cost: Loads, destinations: int) -> Placement:
    """Place items by decreasing cost, each at the least loaded destination.

    Parameters
    ----------
    cost
        Cost of each item, not negative; shape ``(items,)``.
    destinations
        Number of destinations.

    Returns
    -------
    NDArray
        Destination of each item. The largest load is at most ``4/3 - 1/(3 * destinations)`` times the smallest possible
        one. If a perfect balance exists, it exceeds the mean by at most `bound`. Costs are sorted in single precision,
        so costs with smaller differences count as equal.
    """
    order = heaviest_first(np.arange(len(cost)), order_bits(np.asarray(cost, dtype=np.float32)))
    return _place(order, cost, destinations)


def bound(destinations: int) -> float:
    """Return the bound of Theorem 1 of Fang et al.: no load is further from the mean if a perfect balance exists."""
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
