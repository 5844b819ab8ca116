"""Synthetic workload of Fang et al. in intervals, with a planner that runs after each interval."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean

from penstock.benchmarks.timing import timed
from penstock.planning import mixed
from penstock.planning.key_routing import KeyPlan, KeyStatistics
from penstock.planning.load import Placement, imbalance
from penstock.planning.readj import readj_tuned
from penstock.reproduction import hash_ring
from penstock.workloads.key_costs import KeyCosts, fluctuate, zipf

KEYS, SKEW, CHANGE, THETA, INSTANCES, TABLE = 10_000, 0.85, 1.0, 0.08, 15, 3_000
"""Defaults of the paper's table 2, as far as it is legible. The size of the routing table is inferred."""

Planner = Callable[[KeyStatistics], KeyPlan]


class Intervals:
    """Keys whose costs change between intervals. The state of a key is as large as its cost in the last intervals.

    Parameters
    ----------
    keys, instances
        Number of keys and of instances.
    skew
        Exponent of Zipf's law.
    change
        Change of an instance's load between two intervals over the mean load, f in the paper.
    window
        Number of intervals for which state is kept, w in the paper.
    seed
        Seed of the workload and of the hash.
    """

    def __init__(
        self,
        keys: int = KEYS,
        instances: int = INSTANCES,
        *,
        skew: float = SKEW,
        change: float = CHANGE,
        window: int = 1,
        seed: int = 1,
    ) -> None:
        default = hash_ring.place(keys, instances, seed)
        self.costs: KeyCosts = replace(zipf(keys, skew, instances, seed), default=default)
        self._change, self._seed = change, seed
        self._sizes = deque([self.costs.cost], maxlen=window)

    @property
    def default(self) -> Placement:
        """Instance that the hash of each key selects."""
        return self.costs.default

    def statistics(self, current: Placement) -> KeyStatistics:
        """Return the statistics of the last interval, in which keys had the placement ``current``."""
        memory = sum(self._sizes)
        return KeyStatistics(self.costs.cost, memory, self.default, current, self.costs.instances)  # type: ignore[arg-type]

    def advance(self, current: Placement) -> None:
        """Change the costs and begin the next interval."""
        self._seed += 1_000_003
        self.costs = fluctuate(self.costs, current, self._change, self._seed)
        self._sizes.append(self.costs.cost)


@dataclass(frozen=True)
class Planned:
    """A plan after an interval.

    Parameters
    ----------
    planning_ms
        Time of planning in ms.
    migrated
        State that moves over all state.
    table
        Number of entries of the routing table.
    skew_before, skew
        Largest load over the mean with the interval's costs, before and after the plan.
    """

    planning_ms: float
    migrated: float
    table: int
    skew_before: float
    skew: float


def play(intervals: Intervals, planner: Planner, count: int) -> Sequence[Planned]:
    """Plan after each of ``count`` intervals. The first plan, which balances the hash, is not counted."""
    current = planner(intervals.statistics(intervals.default)).destination
    plans = []
    for _ in range(count):
        intervals.advance(current)
        statistics = intervals.statistics(current)
        planning_ms, plan = timed(lambda s=statistics: planner(s))  # type: ignore[misc]
        plans.append(
            Planned(
                planning_ms,
                plan.migrated(statistics) / float(statistics.memory.sum()),
                plan.table_size(statistics),
                imbalance(statistics.load),
                imbalance(plan.load),
            )
        )
        current = plan.destination
    return plans


def planning_ms(plans: Sequence[Planned]) -> float:
    """Return the mean time of planning in ms."""
    return fmean(plan.planning_ms for plan in plans)


def migrated(plans: Sequence[Planned]) -> float:
    """Return the mean share of all state that a plan moves."""
    return fmean(plan.migrated for plan in plans)


def mixed_planner(theta: float = THETA, table: int = TABLE) -> Planner:
    """Return the planner Mixed."""
    return partial(mixed.mixed, theta=theta, table=table)


def brute_force_planner(theta: float = THETA, table: int = TABLE) -> Planner:
    """Return the planner Mixed-BF."""
    return partial(mixed.mixed_brute_force, theta=theta, table=table)


def min_table_planner(theta: float = THETA) -> Planner:
    """Return the planner MinTable."""
    return partial(mixed.min_table, theta=theta)


def min_migration_planner(theta: float = THETA, beta: float = mixed.DEFAULT_BETA) -> Planner:
    """Return the planner MinMig."""
    return partial(mixed.min_migration, theta=theta, beta=beta)


def readj_planner(theta: float = THETA) -> Planner:
    """Return the planner Readj, which uses the best of several sigmas as in the paper."""
    return partial(readj_tuned, theta=theta)
