"""Compiles what planning needs before the first question, which would else wait for it."""

from uuid import UUID

import numpy as np

from penstock.planning.shard_policies import POLICIES
from penstock.sidecar.measured import Measured, Pinning, Placing
from penstock.sidecar.planner import Planner


def warm_up() -> None:
    """Plan for a query that does not exist."""
    planner = Planner()
    ones = np.ones(4, dtype=np.int64)
    for batch in range(3):
        planner.plan(Measured(UUID(int=0), 0, batch, 2, 2, 10.0, np.array([4.0, 6.0]), ones, ones))
    for policy in POLICIES:
        placing = Placing(policy, 1.1, 2, np.zeros(4, dtype=np.int32), np.ones(4))
        planner.plan(Measured(UUID(int=0), 0, 3, 2, 2, 10.0, np.array([4.0, 6.0]), ones, ones, False, placing))
    key = np.ones(1, dtype=np.int64)
    pinning = Pinning(1.1, 1, 2, 4, (), key.astype(np.int32), key, key, np.ones(4))
    planner.plan(Measured(UUID(int=0), 0, 4, 2, 2, 10.0, np.array([4.0, 6.0]), ones, ones, False, None, pinning))
