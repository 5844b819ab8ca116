"""What policies would have made of a trace, batch by batch."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.planning.load import imbalance
from penstock.planning.policies import Batch, Policy


@dataclass(frozen=True)
class Simulated:
    """A policy over all batches; the lists have an entry for each batch.

    Parameters
    ----------
    imbalance
        Largest load of a task over the mean.
    longest, mean
        Largest and mean load of a task: what the batch takes, and what it would take in perfect balance.
    migrated
        Part of all state that moves after the batch.
    table
        Entries of the routing table, or pinned keys, after the batch.
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
        """Throughput, over that of perfect balance: no policy can have more than 1."""
        longest = sum(self.longest)
        return sum(self.mean) / longest if longest > 0 else 1.0


def simulate(
    batches: Iterable[Batch], policy: Policy, clock_ns: Callable[[], int], told: Callable[[], None] = lambda: None
) -> Simulated:
    """Play batches to a policy.

    Parameters
    ----------
    clock_ns
        For the time of planning, such as `time.perf_counter_ns`; nothing else depends on it.
    told
        Is called after each batch.
    """
    rows = []
    for batch in batches:
        load = policy.loads(batch)
        begin = clock_ns()
        step = policy.plan(batch)
        planning_ms = (clock_ns() - begin) / 1e6
        memory = float(batch.memory.sum())
        migrated = step.migrated / memory if memory > 0 else 0.0
        told()
        rows.append((imbalance(load), float(load.max()), float(np.mean(load)), migrated, step.table, planning_ms))
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(6)]
    return Simulated(*columns)
