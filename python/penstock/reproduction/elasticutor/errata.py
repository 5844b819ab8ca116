"""Errors and omissions of Elasticutor's paper, each with a computed case."""

from math import ceil, erfc, floor, sqrt

import numpy as np

from penstock.planning import cores
from penstock.planning.allocation import Queue
from penstock.planning.cores import Counts
from penstock.reproduction.effort import Effort
from penstock.reproduction.experiment import Erratum

ROUNDING = 1e-9


def all_of(effort: Effort) -> list[Erratum]:
    """Return the errata in the order of the paper."""
    return [
        _first_allocation(),
        _sum_of_steps(effort),
        _order_of_executors(),
        _donors(),
        _free_cores(),
        _remote_cores_that_stay(),
        _data_rate(),
        _negative_times(),
    ]


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


_INTENSIVE = 2 * cores.INTENSIVE_BYTES_PER_S


def _demand(needed: list[int], bytes_per_s_and_core: list[float]) -> cores.Demand:
    """Return the demand of executors with equal state, whose main processes are all on the first node."""
    needed_cores = np.array(needed)
    return cores.Demand(
        needed_cores,
        np.ones(len(needed)),
        needed_cores * np.array(bytes_per_s_and_core),
        np.zeros(len(needed), dtype=np.int64),
    )


def _by_node(assigned: Counts, executor: int) -> str:
    return " and ".join(map(str, assigned[:, executor].tolist()))


# A data-intensive executor has one core and needs two. The other cores of its node belong to an executor that has as
# many as it needs.
_CROWDED = np.array([[1, 2], [0, 0]])
_CROWDED_DEMAND = _demand([2, 2], [_INTENSIVE, 0.0])
_CROWDED_CAPACITY = np.array([3, 1])


def _order_of_executors() -> Erratum:
    case = (_CROWDED, _CROWDED_CAPACITY, _CROWDED_DEMAND)
    printed = cores.assign_as_published(*case, least_intensive_first=True)
    text = cores.assign_as_published(*case)
    return Erratum(
        place="Algorithm 1, line 4",
        wrong="Executors choose in non-descending order of data intensity, which contradicts the text and their code.",
        right="The most data-intensive executor chooses first: it has the least choice.",
        shown=(
            "Nodes of 3 cores and 1; A is data-intensive, has 1 core of the first and needs 2, B has its other 2 and "
            f"needs 2. As printed phi must become {printed.phi / 1024:.0f} KB/s, and A gets "
            f"{_by_node(printed.cores, 0)} cores of the nodes; the other way round {_by_node(text.cores, 0)}, with "
            f"{text.phi / 1024:.0f} KB/s."
        ),
        confirmed=printed.phi > text.phi and text.cores[0, 0] == 2,
    )


def _donors() -> Erratum:
    assigned = cores.assign(_CROWDED, _CROWDED_CAPACITY, _CROWDED_DEMAND).cores
    surplus = _CROWDED.sum(axis=0) - _CROWDED_DEMAND.cores
    return Erratum(
        place="Algorithm 1, line 7",
        wrong=(
            "A core may come from any executor that is not short itself, by the text from any that is not "
            "data-intensive, in their code from those with too many only. The first two leave executors short that "
            "have chosen already, the third finds no core where there is one."
        ),
        right="Who has too many gives; a data-intensive executor may also take from one that chooses later.",
        shown=(
            f"In the case above B has {int(surplus[1])} too many and the free core is not on A's node: by the code A "
            f"gets none. Ours gives A {_by_node(assigned, 0)} and B {_by_node(assigned, 1)} cores of the nodes."
        ),
        confirmed=int(surplus[1]) == 0 and assigned.tolist() == [[2, 1], [0, 1]],
    )


def _free_cores() -> Erratum:
    current, needed = np.array([[1]]), _demand([2], [0.0])
    assigned = cores.assign(current, np.array([2]), needed).cores
    return Erratum(
        place="Algorithm 1",
        wrong="It takes cores from executors only: a core that nobody has is given to nobody.",
        right="Free cores belong to an executor that needs none and has no state, as in their code.",
        shown=f"An executor with 1 of a node's 2 cores that needs 2: ours gives it {int(assigned.sum())}.",
        confirmed=int(assigned.sum()) == 2,
    )


def _remote_cores_that_stay() -> Erratum:
    current, needed = np.array([[1], [1]]), _demand([2], [_INTENSIVE])
    assigned = cores.assign(current, np.array([2, 2]), needed).cores
    return Erratum(
        place="Section 4.2, constraint (c)",
        wrong="A data-intensive executor that has as many cores as it needs is never looked at, wherever they are.",
        right="It gives remote cores back first.",
        shown=(
            f"A data-intensive executor with {_by_node(current, 0)} cores of two nodes, of which it needs 2: ours "
            f"gives it {_by_node(assigned, 0)}."
        ),
        confirmed=assigned.tolist() == [[2], [0]],
    )


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
