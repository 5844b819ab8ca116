"""How much is run: the papers' sizes, or a fraction of them to see that everything works."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    """Sizes that may be cut down.

    Parameters
    ----------
    intervals
        Over which means are taken.
    keys
        Largest number of keys.
    adjustments
        Plans one after the other, where a routing table is watched as it grows.
    checks
        Random cases of an erratum.
    seed
        Of all generators.
    """

    intervals: int = 20
    keys: int = 1_000_000
    adjustments: int = 2_000
    checks: int = 20_000
    seed: int = 1


BRIEF = Effort(intervals=3, keys=20_000, adjustments=60, checks=300)
"""Some seconds; claims need not hold with it."""
