"""Compiles what planning needs before the first question, which would else wait for it."""

from uuid import UUID

import numpy as np

from penstock.sidecar.measured import Measured
from penstock.sidecar.planner import Planner


def warm_up() -> None:
    """Plan for a query that does not exist."""
    planner = Planner()
    ones = np.ones(4, dtype=np.int64)
    for batch in range(3):
        planner.plan(Measured(UUID(int=0), 0, batch, 2, 2, 10.0, np.array([4.0, 6.0]), ones, ones))
