"""Errors and omissions of Fang et al., each with a computed case."""

from itertools import product

import numpy as np

from penstock.planning.discretization import discretize, representatives
from penstock.planning.fit_decreasing import fit_decreasing
from penstock.planning.key_routing import KeyStatistics
from penstock.planning.load import Loads, deviation, loads
from penstock.planning.longest_first import bound, longest_first
from penstock.planning.mixed import DEFAULT_BETA, limit_of, mixed, value_of
from penstock.reproduction.effort import Effort
from penstock.reproduction.experiment import Erratum
from penstock.reproduction.fang.intervals import TABLE, THETA, Intervals

ROUNDING = 1e-9


def all_of(effort: Effort) -> list[Erratum]:
    """Return the errata in the order of the paper."""
    return [
        _no_way_out(),
        _theorem_of_longest_first(effort),
        _one_key_too_many(effort),
        _bound_without_a_way_out(effort),
        _too_little_load(),
        _rounds_that_repeat(effort),
        _deviation_of_discretization(effort),
        _deviation_of_one_instance(effort),
    ]


def _no_way_out() -> Erratum:
    cost = np.array([3.0, 4.0, 3.0, 5.0, 5.0])
    stuck = 0
    for places in product((0, 1), repeat=len(cost)):
        place = np.array(places, dtype=np.int32)
        ones = np.ones(len(cost), dtype=np.int32)
        stuck += fit_decreasing(place, cost, cost.astype(np.float32), ones, loads(place, cost, 2), 10.0).fallbacks > 0
    return Erratum(
        place="Algorithm 1 (LLFD)",
        wrong="It does not say what happens to a key for which Adjust answers FALSE at every instance.",
        right="The key goes where the load is least.",
        shown=(
            f"Costs 3, 4, 3, 5, 5 can be divided into 10 and 10; from {stuck} of the 32 placements LLFD gets stuck on "
            "the way."
        ),
        confirmed=stuck > 0,
    )


def _theorem_of_longest_first(effort: Effort) -> Erratum:
    random = np.random.default_rng(effort.seed)
    worst = 0.0
    for _ in range(effort.checks):
        instances = int(random.integers(2, 6))
        worst = max(worst, _excess(_perfect(random, instances), instances) - bound(instances))
    attained = np.array([3.0, 3.0, 2.0, 2.0, 2.0])
    theta = _excess(attained, 2)
    return Erratum(
        place="Theorem 1",
        wrong="The bound (1 - 1/N)/3 is Graham's, and is proved of placing all keys by falling cost, not of LLFD.",
        right="Where LLFD is not within the bound all keys are placed by falling cost, which then is.",
        shown=(
            f"In {effort.checks:,} random cases that have a perfect balance none was above the bound; costs 3, 3, 2, "
            f"2, 2 on two instances attain it: theta = {theta:.4f}, bound {bound(2):.4f}."
        ),
        confirmed=worst <= ROUNDING and abs(theta - bound(2)) < ROUNDING,
    )


def _perfect(random: np.random.Generator, instances: int) -> Loads:
    """Draw costs that can be divided into equal sums."""
    total = int(random.integers(20, 60))
    parts = []
    for _ in range(instances):
        cuts = np.sort(random.integers(0, total + 1, int(random.integers(1, 5))))
        parts.append(np.diff(np.concatenate(([0], cuts, [total]))))
    costs: Loads = np.concatenate(parts).astype(np.float64)
    return costs[costs > 0]


def _excess(cost: Loads, instances: int) -> float:
    return deviation(loads(longest_first(cost, instances), cost, instances))


def _one_key_too_many(effort: Effort) -> Erratum:
    instances = 40
    intervals = Intervals(instances=instances, seed=effort.seed)
    keys = intervals.statistics(intervals.default)
    most = float(keys.cost.max() / keys.load.mean())
    plan = mixed(keys, THETA, TABLE)
    return Erratum(
        place="Equation 3, figure 8",
        wrong="Nothing is said of a key that alone costs more than an instance may: no F meets the constraint then.",
        right="No load needs to be below the largest cost of a key; nothing moves for the rest of it.",
        shown=(
            f"With 40 instances and the default workload one key costs {most:.2f} times the mean; our plan ends at "
            f"{float(plan.load.max() / plan.load.mean()):.2f} with {plan.table_size(keys)} entries."
        ),
        confirmed=most > 1 + THETA and float(plan.load.max()) <= float(keys.cost.max()) * (1 + ROUNDING),
    )


def _bound_without_a_way_out(effort: Effort) -> Erratum:
    random = np.random.default_rng(effort.seed)
    fitted, worst_fitted, worst = 0, 0.0, 0.0
    for _ in range(effort.checks):
        keys, _ = _small_case(random)
        limit = limit_of(keys.load, THETA)
        ones = np.ones(len(keys.cost), dtype=np.int32)
        fit = fit_decreasing(keys.current, keys.cost, keys.cost.astype(np.float32), ones, keys.load, limit)
        above = float(fit.load.max()) / limit
        if fit.fallbacks:
            worst = max(worst, above)
        else:
            fitted, worst_fitted = fitted + 1, max(worst_fitted, above)
    return Erratum(
        place="Theorem 2",
        wrong="No load is said to be above (1 + theta) times the mean after LLFD.",
        right="That holds where every key found a place by Adjust, and not where one had to go somewhere all the same.",
        shown=(
            f"In {fitted:,} of {effort.checks:,} random cases all keys fitted, and no load was above; in the others it "
            f"was up to {worst:.2f} times that."
        ),
        confirmed=0 < fitted < effort.checks and worst_fitted <= 1 + ROUNDING < worst,
    )


def _too_little_load() -> Erratum:
    cost = np.array([10.5, 10.5, 9.0])
    place = np.arange(3, dtype=np.int32)
    keys = KeyStatistics(cost, np.ones(3), place, place, 3)
    plan = mixed(keys, THETA, TABLE)
    return Erratum(
        place="Equation 3, algorithms 1 to 4",
        wrong="A load may be no further below the mean than above it, but only what is above is ever moved.",
        right="As in the algorithms: who has the most decides how long all take.",
        shown=(
            f"Loads 10.5, 10.5 and 9, theta {THETA}: the last is {plan.deviation:.0%} below the mean, and "
            f"{int(plan.migrated(keys))} keys move."
        ),
        confirmed=plan.deviation > THETA and plan.migrated(keys) == 0,
    )


def _rounds_that_repeat(effort: Effort) -> Erratum:
    random = np.random.default_rng(effort.seed)
    for _ in range(effort.checks):
        keys, table = _small_case(random)
        trials = _trials_as_published(keys, table)
        if trials is not None:
            costs = ", ".join(f"{cost:g}" for cost in keys.cost)
            shown = (
                f"Costs {costs} on {keys.destinations} instances, at most {table} entries, theta {THETA}: trials with "
                f"n = {', '.join(map(str, trials))}, and so on for ever."
            )
            break
    else:
        trials, shown = None, f"None of {effort.checks:,} random cases shows it."
    return Erratum(
        place="Algorithm 4 (Mixed)",
        wrong="n becomes |A'| - A_max, which need not grow: the loop may not end.",
        right="Each trial gives up as many more as its table was too large, and half as many again at least.",
        shown=shown,
        confirmed=trials is not None,
    )


def _small_case(random: np.random.Generator) -> tuple[KeyStatistics, int]:
    size, instances = int(random.integers(4, 12)), int(random.integers(2, 5))
    cost, memory = (random.integers(1, 12, size).astype(np.float64) for _ in range(2))
    default, current = (random.integers(0, instances, size).astype(np.int32) for _ in range(2))
    return KeyStatistics(cost, memory, default, current, instances), int(random.integers(0, 4))


def _trials_as_published(keys: KeyStatistics, table: int) -> list[int] | None:
    """Return the numbers of dropped table entries up to the first that repeats. None if the loop ends."""
    entries = keys.table[np.argsort(keys.memory[keys.table], kind="stable")]
    priority = value_of(keys.cost, keys.memory, DEFAULT_BETA)
    trials = [0]
    while True:
        start = keys.current.copy()
        start[entries[: trials[-1]]] = keys.default[entries[: trials[-1]]]
        load = loads(start, keys.cost, keys.destinations)
        ones = np.ones(len(start), dtype=np.int32)
        fit = fit_decreasing(start, keys.cost, priority, ones, load, limit_of(load, THETA))
        start[fit.record] = fit.destination
        over = int(np.count_nonzero(start != keys.default)) - table
        if over <= 0 or trials[-1] >= len(entries):
            return None
        if over in trials[1:]:
            return [*trials, over]
        trials.append(over)


def _deviation_of_discretization(effort: Effort) -> Erratum:
    random = np.random.default_rng(effort.seed)
    found = {}
    for degree in (2, 4, 6, 8):
        value = np.ceil(random.pareto(1.2, 2_000) + 1)
        found[degree] = float((value - discretize(value, np.zeros(len(value), dtype=np.int32), 1, degree)).sum())
    smallest = discretize(np.array([3.0]), np.zeros(1, dtype=np.int32), 1, 2)[0]
    others = ", ".join(f"{abs(sum_):g} with R = {2**degree}" for degree, sum_ in found.items())
    return Erratum(
        place="Theorem 3",
        wrong="Discretization is said to keep the sum of all values exactly.",
        right="The sum deviates by less than the distance of two neighbouring representatives.",
        shown=(
            f"3 alone, with R = 4 and the representatives {', '.join(f'{r:g}' for r in representatives(3, 2))}, "
            f"becomes {smallest:g}. 2,000 Pareto values deviate by {others}."
        ),
        confirmed=smallest != 3 and all(abs(sum_) < 2**degree for degree, sum_ in found.items()),
    )


def _deviation_of_one_instance(effort: Effort) -> Erratum:
    intervals = Intervals(seed=effort.seed)
    value = intervals.costs.cost / intervals.costs.cost.min()
    degree, instances = 6, intervals.costs.instances
    one_sum = discretize(value, np.zeros(len(value), dtype=np.int32), 1, degree)
    own_sums = discretize(value, intervals.default, instances, degree)
    load = loads(intervals.default, value, instances)
    together, apart = (
        float(np.abs(loads(intervals.default, found, instances) - load).max() / load.mean())
        for found in (one_sum, own_sums)
    )
    return Erratum(
        place="Section 4.2",
        wrong="One sum is kept for all keys: it says nothing of the load of one instance.",
        right="Each pair of default and current destination has a sum of its own.",
        shown=(
            f"R = {2**degree}: an instance's load is off by up to {together:.2%} of the mean, and by {apart:.2%} with "
            "own sums."
        ),
        confirmed=apart <= together,
    )
