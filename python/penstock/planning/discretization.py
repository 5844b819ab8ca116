"""Half-linear-half-exponential discretization (HLHE; Fang et al., section 4.2): few values that keep sums."""

import numpy as np

from penstock.planning.compiled import compiled
from penstock.planning.load import Loads, Placement
from penstock.planning.sorting import Keys, heaviest_first, order_bits


def representatives(largest: float, degree: int) -> Loads:
    """Give the values that may stand for others, falling.

    Parameters
    ----------
    largest
        Of the values, in units.
    degree
        r: multiples of ``R = 2 ** r`` stand for what is above R, powers of 2 for what is below.

    Returns
    -------
    NDArray
        ``s * R, (s - 1) * R, ..., R, R / 2, ..., 2, 1`` with ``s = ceil(largest / R)``: of shape ``(s + r,)``.
    """
    step = 2**degree
    linear = np.arange(np.ceil(largest / step), 0, -1) * step
    return np.concatenate((linear, 2.0 ** np.arange(degree - 1, -1, -1)))


def discretize(value: Loads, group: Placement, groups: int, degree: int) -> Loads:
    """Replace each value by one of the two representatives around it, so that sums stay what they are.

    Values are taken by falling size. Where the values of a group so far came to less than they were, the larger one is
    taken, else the smaller one. The paper keeps one sum for all instances, which says nothing of the sum of one; here
    each group has its own. Values below 1, for which the paper has no place, become 0 or 1.

    The paper's Theorem 3 (no deviation at all) does not hold, 3 with R = 4 is an example: a group's sum deviates by
    less than the distance of two neighbours among the representatives.

    Parameters
    ----------
    value
        In units, not negative; shape ``(keys,)``.
    group
        From 0; shape ``(keys,)``. Keys that are planned for as one.
    groups
        Their number.
    degree
        See `representatives`.

    Returns
    -------
    NDArray
        The representative of each value, or 0; shape ``(keys,)``.
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
    """Give the largest representative that is not above a value, and the smallest that is not below it."""
    below, above = 0.0, 1.0
    if value >= step:
        below = np.floor(value / step) * step
        above = below + step
    else:
        while above <= value:
            below, above = above, 2.0 * above
    return below, below if below == value else above
