"""Wang et al., Elasticutor: Rapid Elasticity for Realtime Stateful Stream Processing (SIGMOD 2019)."""

from penstock.reproduction.effort import Effort
from penstock.reproduction.elasticutor import assignment, errata, executors
from penstock.reproduction.experiment import Reproduction

EXPERIMENTS = (
    executors.dynamics,
    executors.skewness,
    executors.sizes,
    assignment.migration,
    assignment.scheduling,
)
LEFT_OUT = (
    (
        "Figure 7, throughput over time",
        "Its transients of 10 to 20 s and of 1 to 3 s are what figure 6 is simulated with.",
    ),
    ("Figures 8, 9, 13 to 15", "They show the network and the memory of their cluster."),
    ("Figures 11 and 12", "Times of synchronisation and migration of their implementation."),
    ("Figures 16b and 16c", "The network decides there."),
    ("Figures 17 to 20", "The orders of the Shanghai Stock Exchange are not public."),
)


def reproduce(effort: Effort) -> Reproduction:
    """Run everything again that counting or simulation can."""
    return Reproduction(
        paper="Wang et al., Elasticutor: Rapid Elasticity for Realtime Stateful Stream Processing (SIGMOD 2019)",
        experiments=[run(effort) for run in EXPERIMENTS],
        errata=errata.all_of(effort),
        left_out=LEFT_OUT,
    )
