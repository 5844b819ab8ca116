"""Mixed over records of similar keys (Fang et al., section 4): plans for millions of keys in milliseconds."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.planning.compiled import compiled
from penstock.planning.discretization import discretize
from penstock.planning.fit_decreasing import Counts, fit_decreasing
from penstock.planning.key_routing import KeyPlan, KeyStatistics
from penstock.planning.load import Loads, Placement, imbalance, loads
from penstock.planning.mixed import DEFAULT_BETA, limit_of, more_given_up, value_of, within_bound
from penstock.planning.sorting import Keys, heaviest_first, order_bits


@dataclass(frozen=True)
class CompactStatistics:
    """Keys merged by equal cost, memory, default and current destination; arrays have the shape ``(records,)``.

    Parameters
    ----------
    cost, memory
        Discretized cost and memory of one key, in the units of the keys' statistics.
    default, current
        Default and current destination of the record's keys.
    count
        Number of keys of the record.
    destinations
        Number of instances.
    """

    cost: Loads
    memory: Loads
    default: Placement
    current: Placement
    count: Counts
    destinations: int

    @property
    def load(self) -> Loads:
        """Estimated load of each destination, shape ``(destinations,)``."""
        return loads(self.current, self.cost * self.count, self.destinations)


@dataclass(frozen=True)
class CompactPlan:
    """The number of keys of each record that move.

    Parameters
    ----------
    record, destination, keys
        Record, new destination and number of keys of each move; shape ``(moves,)`` each.
    load
        Estimated load of each destination with the plan.
    moved_back
        Number of routing table entries that were given up before planning.
    fallbacks
        Number of keys that fitted nowhere.
    """

    record: Keys
    destination: Placement
    keys: Counts
    load: Loads
    moved_back: int
    fallbacks: int

    def table_size(self, records: CompactStatistics) -> int:
        """Count the entries of the routing table with the plan."""
        before = int(records.count[records.current != records.default].sum())
        left = self.keys * (records.current != records.default)[self.record]
        entered = self.keys * (self.destination != records.default[self.record])
        return int(before - left.sum() + entered.sum())

    def expanded(self, keys: KeyStatistics, record_of: Keys) -> KeyPlan:
        """Choose which keys of each record move: those with the lowest numbers first.

        Parameters
        ----------
        keys
            Statistics of the keys that were merged.
        record_of
            Record of each key, see `merge`.
        """
        ordered = np.argsort(record_of, kind="stable")
        first = np.searchsorted(record_of[ordered], self.record)
        by_record = np.argsort(self.record, kind="stable")
        amount = self.keys[by_record].astype(np.int64)
        before = np.cumsum(amount) - amount
        starts = np.searchsorted(self.record[by_record], self.record[by_record])
        offset = before - before[starts]
        destination = keys.current.copy()
        # The moves of a record take consecutive keys.
        position = np.repeat(first[by_record] + offset - before, amount) + np.arange(int(amount.sum()))
        destination[ordered[position]] = np.repeat(self.destination[by_record], amount)
        return KeyPlan(destination, loads(destination, keys.cost, keys.destinations), self.moved_back, self.fallbacks)


def merge(
    keys: KeyStatistics, degree: int, cost_unit: float, memory_unit: float
) -> tuple[CompactStatistics, NDArray[np.int64]]:
    """Merge keys that are equal after their costs and memories are discretized.

    The estimated load of each destination differs from the real one by less than a step for each pair of default and
    current destination.

    Parameters
    ----------
    keys
        Statistics of the last interval.
    degree
        Degree of discretization (r): the coarsest step is ``2 ** r`` units.
    cost_unit, memory_unit
        Size of a unit of cost and of memory. Smaller values become 0 or 1 units.

    Returns
    -------
    tuple
        The records, and the record of each key, shape ``(keys,)``.
    """
    place = keys.current * np.int32(keys.destinations) + keys.default
    groups = keys.destinations**2
    cost, cost_code = _coded(discretize(keys.cost / cost_unit, place, groups, degree))
    memory, memory_code = _coded(discretize(keys.memory / memory_unit, place, groups, degree))
    alike = (place * len(cost) + cost_code) * len(memory) + memory_code
    _, first, record_of, count = np.unique(alike, return_index=True, return_inverse=True, return_counts=True)
    records = CompactStatistics(
        cost[cost_code[first]] * cost_unit,
        np.maximum(memory[memory_code[first]], 1.0) * memory_unit,
        keys.default[first],
        keys.current[first],
        count.astype(np.int32),
        keys.destinations,
    )
    return records, record_of


def mixed_compact(records: CompactStatistics, theta: float, table: int, beta: float = DEFAULT_BETA) -> CompactPlan:
    """Plan as `penstock.planning.mixed.mixed` does, over records.

    Table entries are given up record by record, those with the smallest state first. If the plan is not within the
    bound of Theorem 1 by the costs of the records, all keys are placed by decreasing cost.
    """
    entries = np.flatnonzero(records.current != records.default)
    entries = entries[np.argsort(records.memory[entries], kind="stable")]
    given_up = np.append(0, np.cumsum(records.count[entries]))
    priority = value_of(records.cost, records.memory, beta)
    back = 0
    while True:
        plan = _plan(records, theta, entries[:back], priority)
        over = plan.table_size(records) - table
        if back == len(entries):
            return _guaranteed(records, theta, plan)
        if over <= 0 and within_bound(plan.load, theta, float(records.cost.max())):
            return plan
        wanted = more_given_up(int(given_up[back]), over, int(given_up[-1]))
        back = max(back + 1, int(np.searchsorted(given_up, wanted)))


def _coded(value: Loads) -> tuple[Loads, NDArray[np.int64]]:
    distinct = np.unique(value)
    return distinct, np.searchsorted(distinct, value)


def _plan(
    records: CompactStatistics, theta: float, moved_back: NDArray[np.int64], priority: NDArray[np.float32]
) -> CompactPlan:
    start = records.current.copy()
    start[moved_back] = records.default[moved_back]
    load = loads(start, records.cost * records.count, records.destinations)
    limit = limit_of(load, theta, float(records.cost.max()))
    fit = fit_decreasing(start, records.cost, priority, records.count, load, limit)
    taken = np.bincount(fit.record, weights=fit.keys, minlength=len(start)).astype(np.int32)
    stayed = records.count[moved_back] - taken[moved_back]
    return CompactPlan(
        np.concatenate((fit.record, moved_back)),
        np.concatenate((fit.destination, records.default[moved_back])),
        np.concatenate((fit.keys, stayed)),
        fit.load,
        int(records.count[moved_back].sum()),
        fit.fallbacks,
    )


def _guaranteed(records: CompactStatistics, theta: float, plan: CompactPlan) -> CompactPlan:
    """Place all keys by decreasing cost if the plan exceeds the proved bound and that is more balanced."""
    if within_bound(plan.load, theta, float(records.cost.max())):
        return plan
    order = heaviest_first(np.arange(len(records.cost)), order_bits(records.cost.astype(np.float32)))
    load = np.zeros(records.destinations)
    keys = _longest_first(order, records.cost, records.count, load)
    if imbalance(load) >= imbalance(plan.load):
        return plan
    record, destination = np.nonzero(keys)
    return CompactPlan(
        record, destination.astype(np.int32), keys[record, destination], load, plan.moved_back, plan.fallbacks
    )


@compiled
def _longest_first(order: Keys, cost: Loads, count: Counts, load: Loads) -> NDArray[np.int32]:
    """Give each key, by decreasing cost, to the least loaded destination; return counts, and add to `load`."""
    keys = np.zeros((len(cost), len(load)), dtype=np.int32)
    for record in order:
        for _ in range(count[record]):
            least = np.argmin(load)
            load[least] += cost[record]
            keys[record, least] += 1
    return keys
