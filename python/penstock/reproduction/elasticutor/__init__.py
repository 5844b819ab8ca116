"""Wang et al., Elasticutor: Rapid Elasticity for Realtime Stateful Stream Processing (SIGMOD 2019)."""

from penstock.reproduction.elasticutor import assignment, errata, executors, scaling
from penstock.reproduction.experiment import Paper

EXPERIMENTS = (
    executors.dynamics,
    executors.transients,
    executors.skewness,
    scaling.one_executor,
    executors.sizes,
    assignment.migration,
    assignment.scheduling,
)
LEFT_OUT = (
    ("Figures 8, 9, 14 and 15", "They show the network and the memory of their cluster."),
    (
        "Figures 11 and 12",
        "Times of their implementation. That Elasticutor's does not depend on the number of upstream executors is "
        "its design: one labelling tuple to the task that gives the shard away. The other approach stops each upstream "
        "executor, waits for what is under way from it, tells it the new routes and lets it go on.",
    ),
    ("Figures 16b and 16c", "The network decides there."),
    ("Figures 17 to 20", "The orders of the Shanghai Stock Exchange are not public."),
)

PAPER = Paper(
    "Wang et al., Elasticutor: Rapid Elasticity for Realtime Stateful Stream Processing (SIGMOD 2019)",
    EXPERIMENTS,
    errata.all_of,
    LEFT_OUT,
)
