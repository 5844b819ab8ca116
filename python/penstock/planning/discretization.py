"""Half-linear-half-exponential discretization (HLHE; Fang et al., section 4.2): few distinct values, similar sums."""

import numpy as np

from penstock.planning.compiled import compiled
from penstock.planning.load import Loads, Placement
from penstock.planning.sorting import Keys, heaviest_first, order_bits


def representatives(largest: float, degree: int) -> Loads:
    """Return the values that may stand for others, in decreasing order.

    Parameters
    ----------
    largest
        Largest value to represent, in units.
    degree
        Degree r: with ``R = 2 ** r``, multiples of R represent values above R, and powers of 2 represent values below.

    Returns
    -------
    NDArray
        ``s * R, (s - 1) * R, ..., R, R / 2, ..., 2, 1`` with ``s = ceil(largest / R)``, of shape ``(s + r,)``.
    """
    step = 2**degree
    linear = np.arange(np.ceil(largest / step), 0, -1) * step
    return np.concatenate((linear, 2.0 ** np.arange(degree - 1, -1, -1)))


def discretize(value: Loads, group: Placement, groups: int, degree: int) -> Loads:
    """Replace each value by one of the two representatives around it, so that sums are preserved.

    Values are processed in decreasing order. If the representatives of a group so far sum to less than its values, the
    larger representative is chosen, else the smaller one. The paper keeps one sum for all instances, which does not
    bound the deviation of a single instance. Here each group has its own sum. Values below 1, which the paper does not
    cover, become 0 or 1.

    The paper's Theorem 3 (no deviation at all) does not hold: 3 with R = 4 is a counterexample. The sum of a group
    deviates by less than the distance between two neighbouring representatives.

    Parameters
    ----------
    value
        Values in units, not negative; shape ``(keys,)``.
    group
        Group of each key, from 0; shape ``(keys,)``. Sums are preserved within each group.
    groups
        Number of groups.
    degree
        See `representatives`.

    Returns
    -------
    NDArray
        Representative of each value, or 0; shape ``(keys,)``.
    """
    order = heaviest_first(np.arange(len(value)), order_bits(np.asarray(value, dtype=np.float32)))
    return _discretize(value, group, np.zeros(groups), order, 2.0**degree)


@compiled
def _discretize(value: Loads, group: Placement, missing: Loads, order: Keys, step: float) -> Loads:
    chosen = np.empty(len(value))
    for key in order:
        below, above = _neighbours(value[key], step)
        chosen[key] = above if missing[group[key]] > 0 else below
        missing[group[key]] += value[key] - chosen[key]
    return chosen


@compiled
def _neighbours(value: float, step: float) -> tuple[float, float]:
    """Return the largest representative not above a value, and the smallest one not below it."""
    below, above = 0.0, 1.0
    if value >= step:
        below = np.floor(value / step) * step
        above = below + step
    else:
        while above <= value:
            below, above = above, 2.0 * above
    return below, below if below == value else above
