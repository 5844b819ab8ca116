"""MinTable, MinMig and Mixed: plans for routing keys (Fang et al., section 3), corrected.

A plan keeps every load below ``(1 + theta)`` times the mean, and minimises the routing table, or the state that moves,
or the state that moves with a limit on the table. Loads that are too small are accepted, as in the paper. If a single
key costs more than the limit, the limit is raised to its cost, and nothing is moved because of it.

If a perfect balance exists, no load exceeds the mean by more than theta or `longest_first.bound`, whichever is larger.
The paper proves that (Theorem 1) for placing all keys by decreasing cost, not for its own algorithms. Here all keys are
placed that way if the other algorithms did not reach the bound.
"""

import numpy as np
from numpy.typing import NDArray

from penstock.planning.compiled import compiled
from penstock.planning.fit_decreasing import fit_decreasing
from penstock.planning.key_routing import KeyPlan, KeyStatistics
from penstock.planning.load import Loads, imbalance, loads
from penstock.planning.longest_first import bound, longest_first

DEFAULT_BETA = 1.5
# Tolerance for rounding errors: a load that equals the limit must not count as above it.
_ROUNDING = 1e-12


def min_table(keys: KeyStatistics, theta: float) -> KeyPlan:
    """Give up the whole table, then move the most expensive keys (MinTable): small table, more state moves."""
    return _guaranteed(keys, theta, _plan(keys, theta, keys.table, keys.cost.astype(np.float32)))


def min_migration(keys: KeyStatistics, theta: float, beta: float = DEFAULT_BETA) -> KeyPlan:
    """Keep the table, and move keys that are expensive relative to the size of their state (MinMig)."""
    plan = _plan(keys, theta, np.empty(0, dtype=np.int64), value_of(keys.cost, keys.memory, beta))
    return _guaranteed(keys, theta, plan)


def mixed(keys: KeyStatistics, theta: float, table: int, beta: float = DEFAULT_BETA) -> KeyPlan:
    """Give up as few table entries as make the new table small enough, those with the smallest state first.

    Each trial gives up as many further entries as the table was too large by. In the paper that number replaces the one
    before, need not grow, and the algorithm may not end. Here it grows by at least half, and ends with the whole table.

    Parameters
    ----------
    keys
        Statistics of the last interval.
    theta
        Largest distance of a load from the mean, over the mean, that is accepted.
    table
        Largest number of entries of the routing table (A_max).
    beta
        Weight of cost against memory. A larger beta makes the table smaller and moves more state.

    Returns
    -------
    KeyPlan
        The first plan within the limits. If even giving up all entries is not enough, the plan for that, whose table
        may be too large.
    """
    entries, value = _smallest_first(keys), value_of(keys.cost, keys.memory, beta)
    back = 0
    while True:
        plan = _plan(keys, theta, entries[:back], value)
        over = plan.table_size(keys) - table
        if back == len(entries):
            return _guaranteed(keys, theta, plan)
        if over <= 0 and within_bound(plan.load, theta, float(keys.cost.max())):
            return plan
        back = more_given_up(back, over, len(entries))


def mixed_brute_force(keys: KeyStatistics, theta: float, table: int, beta: float = DEFAULT_BETA) -> KeyPlan:
    """Try every number of entries to give up, and return the plan that moves the least state (Mixed-BF)."""
    entries, value = _smallest_first(keys), value_of(keys.cost, keys.memory, beta)
    plans = [_plan(keys, theta, entries[:back], value) for back in range(len(entries) + 1)]
    plans[-1] = _guaranteed(keys, theta, plans[-1])

    def merit(plan: KeyPlan) -> tuple[int, float, float]:
        too_large = max(0, plan.table_size(keys) - table)
        return too_large, max(theta, imbalance(plan.load) - 1.0), plan.migrated(keys)

    return min(plans, key=merit)


def _smallest_first(keys: KeyStatistics) -> NDArray[np.int64]:
    table = keys.table
    return table[np.argsort(keys.memory[table], kind="stable")]


def value_of(cost: Loads, memory: Loads, beta: float) -> NDArray[np.float32]:
    """Return gamma, the cost of keys to the power of beta over their memory (section 3.2), in single precision."""
    # The special case for the default beta takes a fifth of the time of the power function.
    return _default_value(cost, memory) if beta == DEFAULT_BETA else _any_value(cost, memory, beta)


def limit_of(load: Loads, theta: float, largest: float = 0.0) -> float:
    """Return the largest load that is accepted (L_max), which is at least the largest cost of a key."""
    return max((1.0 + theta) * float(load.mean()), largest) * (1.0 + _ROUNDING)


def more_given_up(back: int, over: int, entries: int) -> int:
    """Return how many entries the next trial gives up, after a trial whose table was too large by `over`."""
    return min(back + max(1, over, back // 2), entries)


@compiled
def _default_value(cost: Loads, memory: Loads) -> NDArray[np.float32]:
    value = np.empty(len(cost), dtype=np.float32)
    for key in range(len(cost)):
        value[key] = cost[key] * np.sqrt(cost[key]) / memory[key]
    return value


@compiled
def _any_value(cost: Loads, memory: Loads, beta: float) -> NDArray[np.float32]:
    value = np.empty(len(cost), dtype=np.float32)
    for key in range(len(cost)):
        value[key] = cost[key] ** beta / memory[key]
    return value


def _plan(keys: KeyStatistics, theta: float, moved_back: NDArray[np.int64], priority: NDArray[np.float32]) -> KeyPlan:
    start, load = keys.current, keys.load
    if len(moved_back):
        start = start.copy()
        start[moved_back] = keys.default[moved_back]
        load = loads(start, keys.cost, keys.destinations)
    ones = np.ones(len(start), dtype=np.int32)
    limit = limit_of(load, theta, float(keys.cost.max()))
    fit = fit_decreasing(start, keys.cost, priority, ones, load, limit)
    destination = start.copy()
    destination[fit.record] = fit.destination
    return KeyPlan(destination, fit.load, len(moved_back), fit.fallbacks)


def within_bound(load: Loads, theta: float, largest: float) -> bool:
    """Check that loads are within theta, or within the bound proved for placing all keys by decreasing cost."""
    least = max(float(load.mean()), largest)
    return float(load.max()) <= (1.0 + max(theta, bound(len(load)))) * least * (1.0 + _ROUNDING)


def _guaranteed(keys: KeyStatistics, theta: float, plan: KeyPlan) -> KeyPlan:
    """Place all keys by decreasing cost if the plan exceeds the proved bound and that is more balanced."""
    if within_bound(plan.load, theta, float(keys.cost.max())):
        return plan
    # This moves nearly all state, so it is the last resort.
    destination = longest_first(keys.cost, keys.destinations)
    load = loads(destination, keys.cost, keys.destinations)
    if imbalance(load) >= imbalance(plan.load):
        return plan
    return KeyPlan(destination, load, plan.moved_back, plan.fallbacks)
