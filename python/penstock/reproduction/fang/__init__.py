"""Fang et al., Parallel Stream Processing Against Workload Skewness and Variance (HPDC 2017)."""

from penstock.reproduction.experiment import Paper
from penstock.reproduction.fang import discretization, errata, example, plans, skew, table, throughput

EXPERIMENTS = (
    example.worked,
    skew.hashing,
    plans.instances,
    plans.tolerance,
    plans.key_domain,
    discretization.degrees,
    plans.fluctuation,
    throughput.fluctuation,
    plans.scale_out,
    table.bound,
    table.growth,
    table.window,
    table.weight,
)
LEFT_OUT = (
    ("Figure 13b, latency", "It is that of their cluster; the model has no queues."),
    (
        "Figure 14, throughput on real data",
        "The feeds of the microblog and of the stock exchange are not public. That Mixed has 10 % more throughput and "
        "40 % less latency than PKG comes from what it costs PKG to merge partial results, in their cluster.",
    ),
    ("Figure 16, TPC-H Q5", "It shows Storm's back-pressure between joins, which a model of balance does not have."),
)

PAPER = Paper(
    "Fang et al., Parallel Stream Processing Against Workload Skewness and Variance (HPDC 2017)",
    EXPERIMENTS,
    errata.all_of,
    LEFT_OUT,
)
