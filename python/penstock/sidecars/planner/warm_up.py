"""Compiles what planning needs before the first question, which would otherwise wait for it."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from uuid import UUID

import numpy as np

from penstock.planning.shard_policies import POLICIES
from penstock.sidecars.planner.measured import Homing, Measured, Pinning, Placing
from penstock.sidecars.planner.planner import Planner


def warm_up() -> None:
    """Make plans for a query that does not exist."""
    planner = Planner()
    for measured in _batches():
        # An error here occurs again for a real question, and is then reported in its answer.
        with suppress(Exception):
            planner.plan(measured)


def _batches() -> Iterator[Measured]:
    ones, task = np.ones(4, dtype=np.int64), np.array([0, 0, 1, 1], dtype=np.int32)
    counts = Measured(UUID(int=0), 0, 0, 2, 2, 10.0, np.array([4.0, 6.0]), ones, ones)
    yield from [counts] * 3
    fixed = replace(counts, plans_tasks=False)
    for policy in POLICIES:
        yield replace(fixed, placing=Placing(policy, 1.1, 2, task, np.ones(4)))
    yield from [replace(fixed, ran_on=task)] * 2
    key = np.ones(1, dtype=np.int64)
    yield replace(fixed, pinning=Pinning(1.1, 1, 2, 4, (), key.astype(np.int32), key, key, np.ones(4)))
    executors = Homing(1.1, True, 1e5, 1.0, ("a", "b", "c"), np.ones(3), np.array([2, 0, 0]), task, np.ones(4))
    yield replace(fixed, homing=executors)
