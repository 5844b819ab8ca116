"""Planning with records of merged keys instead of keys: figure 11 of Fang et al."""

from collections.abc import Sequence
from statistics import fmean

import numpy as np

from penstock.benchmarks.timing import timed
from penstock.charts.chart import Chart, Line
from penstock.planning import compact, mixed
from penstock.planning.key_routing import KeyStatistics
from penstock.reproduction.effort import Effort
from penstock.reproduction.experiment import Claim, Experiment
from penstock.reproduction.fang.intervals import TABLE, THETA, Intervals, mixed_planner

DEGREES = range(9)
CLOSE = 0.01


def degrees(effort: Effort) -> Experiment:
    """Figure 11."""
    times = max(3, effort.intervals // 4)
    intervals = [_interval(effort.keys, effort.seed + i) for i in range(times + 1)]
    # The first plan is not counted, because compiled code is loaded with it.
    exact_ms = fmean([timed(lambda k=k: mixed.mixed(k, THETA, TABLE))[0] for k in intervals][1:])  # type: ignore[misc]
    columns = []
    for degree in DEGREES:
        found = [_compact(keys, degree) for keys in intervals][1:]
        columns.append([fmean(values) for values in zip(*found, strict=True)])
    planning, merging, errors, records = zip(*columns, strict=True)
    steps = [2.0**degree for degree in DEGREES]
    return Experiment(
        name="fang-11",
        title="Figure 11: keys that are alike are planned for as one",
        method=(
            f"K = {effort.keys:,}, theta {THETA}, after one fluctuation; the smallest cost and size are 1, R = 1 to "
            f"256; {times} intervals. Error: largest distance of an instance's estimated load from its real one, over "
            "the mean."
        ),
        claims=[
            Claim(
                "plans over records are faster by an order of magnitude",
                "0.6 s, 6 s over keys",
                f"{planning[3]:.1f} ms with R = 8, {exact_ms:.1f} ms over keys",
                planning[3] < exact_ms,
            ),
            Claim("the error of loads", "at most 1 %", f"at most {max(errors):.2%}", max(errors) <= CLOSE),
            Claim(
                "coarser is faster",
                "yes",
                f"{planning[0]:.1f} ms with R = 1, {planning[-1]:.1f} ms with R = 256",
                planning[-1] < planning[0],
            ),
        ],
        charts=[
            Chart(
                "R",
                "ms",
                [
                    Line("plan over records", steps, planning),
                    Line("merging keys into records", steps, merging),
                    Line("plan over keys", steps, [exact_ms] * len(steps)),
                ],
                log_x=True,
                log_y=True,
            ),
            Chart(
                "R", "error, per cent", [Line("largest of an instance", steps, [100 * e for e in errors])], log_x=True
            ),
        ],
        remark=(
            f"{records[3]:,.0f} records stand for {effort.keys:,} keys with R = 8. {_passes(steps, errors)}Our plan "
            "over keys takes a small part of the paper's time, so that there is less to gain. What it takes to merge "
            "keys is not in the paper's figure; there, instances report records. The text calls a larger R finer; it "
            "is coarser."
        ),
    )


def _passes(steps: Sequence[float], errors: Sequence[float]) -> str:
    above = [step for step, error in zip(steps, errors, strict=True) if error > CLOSE]
    return f"The error is above {CLOSE:.0%} from R = {above[0]:g} on, where few records are left. " if above else ""


def _interval(keys: int, seed: int) -> KeyStatistics:
    intervals = Intervals(keys=keys, seed=seed)
    placed = mixed_planner()(intervals.statistics(intervals.default)).destination
    intervals.advance(placed)
    return intervals.statistics(placed)


def _compact(keys: KeyStatistics, degree: int) -> tuple[float, float, float, float]:
    smallest = float(keys.cost.min()), float(keys.memory.min())
    merging_ms, (records, record_of) = timed(lambda: compact.merge(keys, degree, *smallest))
    planning_ms, plan = timed(lambda: compact.mixed_compact(records, THETA, TABLE))
    real = plan.expanded(keys, record_of).load
    return planning_ms, merging_ms, float(np.abs(plan.load - real).max() / real.mean()), len(records.cost)
