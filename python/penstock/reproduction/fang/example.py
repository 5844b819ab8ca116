"""Worked example: figure 4 of Fang et al."""

import numpy as np

from penstock.planning.fit_decreasing import fit_decreasing
from penstock.planning.key_routing import KeyStatistics
from penstock.planning.mixed import min_migration, min_table
from penstock.reproduction.effort import Effort
from penstock.reproduction.experiment import Claim, Experiment

COSTS = np.array([7.0, 4.0, 5.0, 2.0, 1.0, 1.0])
PLACES = np.array([0, 0, 0, 1, 1, 1], dtype=np.int32)
HOMES = np.array([0, 0, 1, 0, 1, 1], dtype=np.int32)


def worked(_: Effort) -> Experiment:
    """Figure 4."""
    load = np.array([16.0, 4.0])
    fit = fit_decreasing(PLACES, COSTS, COSTS.astype(np.float32), np.ones(6, dtype=np.int32), load, 10.0)
    keys = KeyStatistics(COSTS, np.ones(6), HOMES, PLACES, 2)
    cleaned, kept = min_table(keys, 0.0), min_migration(keys, 0.0)
    steps = ", ".join(f"{COSTS[key]:g} to d{to + 1}" for key, to in zip(fit.record, fit.destination, strict=True))
    return Experiment(
        name="fang-04",
        title="Figure 4: LLFD and MinTable step by step",
        method="Costs 7, 4, 5 at d1 and 2, 1, 1 at d2, theta 0; the table has entries for 5 and 2.",
        claims=[
            Claim(
                "LLFD ends in perfect balance",
                "10 and 10",
                " and ".join(f"{x:g}" for x in fit.load),
                bool((fit.load == 10).all()),
            ),
            Claim(
                "7 goes to d2, where 2 makes room; 2 is refused at d1 and goes back, where a 1 makes room",
                "7 to d2, 2 to d2, 1 to d1",
                steps,
                steps == "7 to d2, 2 to d2, 1 to d1",
            ),
            Claim(
                "moving the table back first keeps it small",
                "2 entries, 4 without",
                f"{cleaned.table_size(keys)} entries, {kept.table_size(keys)} without",
                cleaned.table_size(keys) <= 2 < kept.table_size(keys),
            ),
        ],
    )
