"""Where Elasticutor's paper is wrong or silent, each with a case that is computed."""

from math import ceil, erfc, floor, sqrt

import numpy as np

from penstock.planning import cores
from penstock.planning.allocation import Queue
from penstock.planning.cores import Counts
from penstock.reproduction.effort import Effort
from penstock.reproduction.experiment import Erratum

ROUNDING = 1e-9


def all_of(effort: Effort) -> list[Erratum]:
    """Give the errata in the order of the paper."""
    return [_first_allocation(), _sum_of_steps(effort), _data_rate(), _negative_times()]


def _first_allocation() -> Erratum:
    arrival, service = 2.5, 1.0
    published, least = ceil(arrival / service) + 1, floor(arrival / service) + 1
    tuples = Queue(arrival / service, least).tuples
    return Erratum(
        place="Section 4.1",
        wrong="The allocation begins with ceil(lambda / mu) + 1 cores, one more than needed where that is no integer.",
        right="floor(lambda / mu) + 1 is the least with which the queue is stable.",
        shown=(
            f"lambda / mu = {arrival}: {least} cores are stable, with {tuples:.2f} tuples in the mean; the paper "
            f"begins with {published}."
        ),
        confirmed=least == published - 1 and least > arrival,
    )


def _sum_of_steps(effort: Effort) -> Erratum:
    random = np.random.default_rng(effort.seed)
    exact, worst = 0.0, 0.0
    for _ in range(effort.checks):
        before = random.integers(0, 5, 4)
        before[0] += 2
        after, summed, state = before.copy(), 0.0, np.array([1.0])
        step = int(random.choice((1, -1)))
        for number in range(int(random.integers(1, 5))):
            node, total = int(random.choice(np.flatnonzero(after))), int(after.sum())
            if total + step == 0:
                break
            cost = (total - after[node]) / (total * (total + step))
            changed = after.copy()
            changed[node] += step
            moved = cores.migrated_bytes(_column(after), _column(changed), state)
            exact = max(exact, abs(moved - cost))
            summed, after = summed + cost, changed
            if number:
                real = cores.migrated_bytes(_column(before), _column(after), state)
                if real > ROUNDING:
                    worst = max(worst, summed / real)
    return Erratum(
        place="Section 4.2, C+ and C-",
        wrong=(
            "They are the costs of one step from where cores are, and are added up as if the last assignment were "
            "there still."
        ),
        right="The exact change against the last assignment is as cheap to keep; the better of both plans is taken.",
        shown=(
            f"In {effort.checks:,} executors that get up to 4 cores, or lose them, each C+ and C- was exact to "
            f"{exact:.0e}, and their sum up to {worst:.1f} times what had moved in the end."
        ),
        confirmed=bool(exact < ROUNDING and worst > 1.5),
    )


def _column(cores_of_nodes: Counts) -> Counts:
    return np.ascontiguousarray(cores_of_nodes.reshape(-1, 1))


def _data_rate() -> Erratum:
    tuple_bytes, cost_s = 2 * 1024, 0.01e-3
    gigabits = tuple_bytes * 8 / cost_s / 1e9
    return Erratum(
        place="Section 5.1",
        wrong="2 KB tuples at 0.01 ms each are said to need 2 Gb/s for one core.",
        right="One way it is less; the conclusion, that it is more than the network's 1 Gb/s, stays.",
        shown=f"{tuple_bytes} B / 0.01 ms = {gigabits:.2f} Gb/s.",
        confirmed=1 < gigabits < 2,
    )


def _negative_times() -> Erratum:
    mean, variance = 1.0, 0.5
    negative = 0.5 * erfc(mean / sqrt(variance) / sqrt(2))
    return Erratum(
        place="Section 5.1",
        wrong="Service times are drawn from a normal distribution of mean 1 ms and variance 0.5.",
        right="What is below 0 has no meaning and must be cut off, which makes the mean larger.",
        shown=f"{negative:.1%} of such times are negative.",
        confirmed=0.07 < negative < 0.09,
    )
