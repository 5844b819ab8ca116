"""MinTable, MinMig and Mixed: plans for routing keys (Fang et al., section 3), corrected.

A plan keeps every load below ``(1 + theta)`` times the mean, with a small routing table, or with little state that
moves, or with little state that moves and a table that is small enough. Too small a load is left alone, as in the
paper. Where one key alone costs more, no load needs to be below its cost: nothing is moved for it.

Where a perfect balance exists, no load is more than theta or `longest_first.bound` above the mean, whichever is more.
The paper proves that (Theorem 1) of placing all keys by falling cost, not of its own algorithms: here that is done when
the others did not reach it.
"""

import numpy as np
from numpy.typing import NDArray

from penstock.planning.compiled import compiled
from penstock.planning.fit_decreasing import fit_decreasing
from penstock.planning.key_routing import KeyPlan, KeyStatistics
from penstock.planning.load import Loads, imbalance, loads
from penstock.planning.longest_first import bound, longest_first

DEFAULT_BETA = 1.5
# Sums of floating-point costs: a load that equals the limit must not count as above it.
_ROUNDING = 1e-12


def min_table(keys: KeyStatistics, theta: float) -> KeyPlan:
    """Give up the whole table, then move the most expensive keys: the table stays small, more state moves."""
    return _guaranteed(keys, theta, _plan(keys, theta, keys.table, keys.cost.astype(np.float32)))


def min_migration(keys: KeyStatistics, theta: float, beta: float = DEFAULT_BETA) -> KeyPlan:
    """Keep the table, and move what is expensive for the size of its state (MinMig)."""
    plan = _plan(keys, theta, np.empty(0, dtype=np.int64), value_of(keys.cost, keys.memory, beta))
    return _guaranteed(keys, theta, plan)


def mixed(keys: KeyStatistics, theta: float, table: int, beta: float = DEFAULT_BETA) -> KeyPlan:
    """Give up as few entries as make the new table small enough, those with the smallest state first.

    Each trial gives up as many more as its table was too large. In the paper that number replaces the one before, need
    not grow, and the algorithm may go on for ever; here it grows by half at least, and ends with the whole table.

    Parameters
    ----------
    keys
        The last interval.
    theta
        Largest distance of a load from the mean, over the mean, that is accepted.
    table
        Entries that the routing table may have (A_max).
    beta
        How much cost counts against memory: the table is smaller with a larger one, and more state moves.

    Returns
    -------
    KeyPlan
        With a table that is too large where even giving up all entries did not help: that plan, then.
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
    """Try every number of entries to give up, and take the plan that moves least (Mixed-BF)."""
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
    """Give gamma, the cost of keys to the power of beta over their memory (section 3.2), in single precision."""
    # The default takes a fifth of the time of a power.
    return _default_value(cost, memory) if beta == DEFAULT_BETA else _any_value(cost, memory, beta)


def limit_of(load: Loads, theta: float, largest: float = 0.0) -> float:
    """Give the largest load that is accepted (L_max): never less than the largest cost of a key."""
    return max((1.0 + theta) * float(load.mean()), largest) * (1.0 + _ROUNDING)


def more_given_up(back: int, over: int, entries: int) -> int:
    """Give the number of entries of the next trial, after one whose table was so much too large."""
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
    """Say whether placing all keys by falling cost could not be proved to be better; `largest` is a key's cost."""
    least = max(float(load.mean()), largest)
    return float(load.max()) <= (1.0 + max(theta, bound(len(load)))) * least * (1.0 + _ROUNDING)


def _guaranteed(keys: KeyStatistics, theta: float, plan: KeyPlan) -> KeyPlan:
    """Place all keys by falling cost where a plan is not as balanced as that is proved to be, and it is better."""
    if within_bound(plan.load, theta, float(keys.cost.max())):
        return plan
    # It moves nearly everything, so it is the last resort.
    destination = longest_first(keys.cost, keys.destinations)
    load = loads(destination, keys.cost, keys.destinations)
    if imbalance(load) >= imbalance(plan.load):
        return plan
    return KeyPlan(destination, load, plan.moved_back, plan.fallbacks)
