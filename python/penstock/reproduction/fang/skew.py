"""Imbalance of placement by hash only: figure 7 of Fang et al."""

from collections.abc import Mapping, Sequence

import numpy as np

from penstock.charts.chart import Chart, Line
from penstock.planning.load import Loads, loads
from penstock.reproduction import hash_ring
from penstock.reproduction.effort import Effort
from penstock.reproduction.experiment import Claim, Experiment
from penstock.reproduction.fang.intervals import INSTANCES, KEYS, Intervals

TIMES = 50


def hashing(effort: Effort) -> Experiment:
    """Figure 7."""
    by_instances = {n: _sorted_loads(effort, KEYS, n) for n in (5, 10, 20, 40)}
    by_keys = {k: _sorted_loads(effort, k, INSTANCES) for k in (5_000, 10_000, 100_000, 1_000_000) if k <= effort.keys}
    few, many = by_keys[min(by_keys)], by_keys[max(by_keys)]
    skews = [load[-1] for load in by_instances.values()]
    return Experiment(
        name="fang-07",
        title="Figure 7: what a hash makes of skewed keys",
        method=(
            f"Consistent hashing, {hash_ring.POINTS} points for each instance; frequencies given to keys by chance "
            f"{TIMES} times. Loads over the mean, sorted; then the mean of each rank."
        ),
        claims=[
            Claim("skewness with 40 instances", "almost 2.5", f"{skews[-1]:.2f}", 2.0 <= skews[-1] <= 3.0),
            Claim("grows with the instances", "5 to 40", _rising(skews), bool(np.all(np.diff(skews) > 0))),
            Claim(
                "is larger with few keys than with many",
                "much larger",
                f"{few[-1]:.2f} with {min(by_keys):,}, {many[-1]:.2f} with {max(by_keys):,}",
                few[-1] > many[-1],
            ),
        ],
        charts=[
            _chart({f"{n} instances": load for n, load in by_instances.items()}),
            _chart({f"{k:,} keys": load for k, load in by_keys.items()}),
        ],
        remark=(
            "The paper speaks of the largest load over the smallest here, and of the largest over the mean where it "
            "defines skewness; ours is the second. Where one key has more than an instance's share no placement "
            "helps: the first of 10,000 keys has 4.9 % of the tuples, twice the share of one of 40 instances."
        ),
    )


def _sorted_loads(effort: Effort, keys: int, instances: int) -> Loads:
    times = min(TIMES, 3 * effort.intervals)
    total = np.zeros(instances)
    for time in range(times):
        intervals = Intervals(keys, instances, seed=effort.seed + time)
        load = loads(intervals.default, intervals.costs.cost, instances)
        total += np.sort(load) / load.mean()
    return total / times


def _rising(skews: Sequence[float]) -> str:
    return ", ".join(f"{skew:.2f}" for skew in skews)


def _chart(by_name: Mapping[str, Loads]) -> Chart:
    lines = [Line(name, np.linspace(0, 100, len(load)).tolist(), load.tolist()) for name, load in by_name.items()]
    return Chart("instances, per cent", "load over the mean", lines)
