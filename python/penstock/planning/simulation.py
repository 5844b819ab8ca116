"""Simulates policies on a trace, batch by batch."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.planning.load import imbalance
from penstock.planning.policies import Batch, Policy


@dataclass(frozen=True)
class Simulated:
    """Results of a policy; each list has an entry for each batch.

    Parameters
    ----------
    imbalance
        Imbalance of the tasks.
    longest, mean
        Largest and mean load of a task: the time of the batch, and its time in perfect balance.
    migrated
        Fraction of all state that moves after the batch.
    table
        Number of entries of the routing table, or of pinned keys, after the batch.
    planning_ms
        Time of planning.
    """

    imbalance: Sequence[float]
    longest: Sequence[float]
    mean: Sequence[float]
    migrated: Sequence[float]
    table: Sequence[int]
    planning_ms: Sequence[float]

    @property
    def of_perfect(self) -> float:
        """Throughput relative to perfect balance; 1 is the maximum."""
        longest = sum(self.longest)
        return sum(self.mean) / longest if longest > 0 else 1.0


def simulate(
    batches: Iterable[Batch], policy: Policy, clock_ns: Callable[[], int], on_batch: Callable[[], None] = lambda: None
) -> Simulated:
    """Run a policy on batches.

    Parameters
    ----------
    batches
        Batches in the order in which they run.
    policy
        Policy that places the keys of each batch.
    clock_ns
        Clock that measures the time of planning, such as `time.perf_counter_ns`. Nothing else depends on it.
    on_batch
        Called after each batch.
    """
    rows = []
    for batch in batches:
        load = policy.loads(batch)
        begin = clock_ns()
        step = policy.plan(batch)
        planning_ms = (clock_ns() - begin) / 1e6
        memory = float(batch.memory.sum())
        migrated = step.migrated / memory if memory > 0 else 0.0
        on_batch()
        rows.append((imbalance(load), float(load.max()), float(np.mean(load)), migrated, step.table, planning_ms))
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(6)]
    return Simulated(*columns)
