"""Fang et al.'s synthetic workload, interval by interval, and a planner that is run between intervals."""

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
"""Defaults of the paper's table 2, where it can be read; the size of the table is inferred."""

Planner = Callable[[KeyStatistics], KeyPlan]


class Intervals:
    """Keys whose costs change between intervals; a key's state is what its last intervals have cost.

    Parameters
    ----------
    keys, instances
        Their numbers.
    skew
        Exponent of Zipf's law.
    change
        f: by how much of the mean load an instance's load changes between two intervals.
    window
        w: over how many intervals state is kept.
    seed
        Of the workload and the hash.
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
        """Where the hash puts each key."""
        return self.costs.default

    def statistics(self, current: Placement) -> KeyStatistics:
        """Give what the last interval measured, with keys where they were."""
        memory = sum(self._sizes)
        return KeyStatistics(self.costs.cost, memory, self.default, current, self.costs.instances)  # type: ignore[arg-type]

    def advance(self, current: Placement) -> None:
        """Let costs change, and a further interval begin."""
        self._seed += 1_000_003
        self.costs = fluctuate(self.costs, current, self._change, self._seed)
        self._sizes.append(self.costs.cost)


@dataclass(frozen=True)
class Planned:
    """A plan after an interval.

    Parameters
    ----------
    planning_ms
        Its time.
    migrated
        State that moves, over all state.
    table
        Entries of the routing table.
    skew_before, skew
        Largest load over the mean with the interval's costs: as it was, and as the plan makes it.
    """

    planning_ms: float
    migrated: float
    table: int
    skew_before: float
    skew: float


def play(intervals: Intervals, planner: Planner, count: int) -> Sequence[Planned]:
    """Plan after each of some intervals; what brings the first hash into balance is not counted."""
    current = planner(intervals.statistics(intervals.default)).destination
    made = []
    for _ in range(count):
        intervals.advance(current)
        statistics = intervals.statistics(current)
        planning_ms, plan = timed(lambda s=statistics: planner(s))  # type: ignore[misc]
        made.append(
            Planned(
                planning_ms,
                plan.migrated(statistics) / float(statistics.memory.sum()),
                plan.table_size(statistics),
                imbalance(statistics.load),
                imbalance(plan.load),
            )
        )
        current = plan.destination
    return made


def planning_ms(made: Sequence[Planned]) -> float:
    """Mean time of a plan."""
    return fmean(plan.planning_ms for plan in made)


def migrated(made: Sequence[Planned]) -> float:
    """Mean part of all state that a plan moves."""
    return fmean(plan.migrated for plan in made)


def mixed_planner(theta: float = THETA, table: int = TABLE) -> Planner:
    """Give Mixed."""
    return partial(mixed.mixed, theta=theta, table=table)


def brute_force_planner(theta: float = THETA, table: int = TABLE) -> Planner:
    """Give Mixed-BF."""
    return partial(mixed.mixed_brute_force, theta=theta, table=table)


def min_table_planner(theta: float = THETA) -> Planner:
    """Give MinTable."""
    return partial(mixed.min_table, theta=theta)


def min_migration_planner(theta: float = THETA, beta: float = mixed.DEFAULT_BETA) -> Planner:
    """Give MinMig."""
    return partial(mixed.min_migration, theta=theta, beta=beta)


def readj_planner(theta: float = THETA) -> Planner:
    """Give Readj with the best of several sigmas, as the paper does."""
    return partial(readj_tuned, theta=theta)
