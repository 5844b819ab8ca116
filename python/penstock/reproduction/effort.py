"""Sizes of the experiments: those of the papers, or small ones for a quick test."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    """Sizes of the experiments.

    Parameters
    ----------
    intervals
        Number of intervals over which means are taken.
    keys
        Largest number of keys.
    adjustments
        Number of consecutive plans in experiments about the growth of a routing table.
    checks
        Number of random cases for an erratum.
    seed
        Seed of all random generators.
    """

    intervals: int = 20
    keys: int = 1_000_000
    adjustments: int = 2_000
    checks: int = 20_000
    seed: int = 1


BRIEF = Effort(intervals=3, keys=20_000, adjustments=60, checks=300)
"""Small sizes that take some seconds. Claims may not hold with them."""
