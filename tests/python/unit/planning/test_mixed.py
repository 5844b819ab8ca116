"""MinTable, MinMig and Mixed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from penstock.planning.key_routing import KeyStatistics
from penstock.planning.load import imbalance, loads
from penstock.planning.longest_first import bound
from penstock.planning.mixed import min_migration, min_table, mixed, mixed_brute_force, more_given_up

ROUNDING = 1e-9


def statistics(cost, memory, default, current, destinations):
    return KeyStatistics(
        np.array(cost, dtype=np.float64),
        np.array(memory, dtype=np.float64),
        np.array(default, dtype=np.int32),
        np.array(current, dtype=np.int32),
        destinations,
    )


@st.composite
def intervals(draw, perfect=False):
    """Draw keys; with `perfect` their costs can be divided so that all loads are equal."""
    destinations = draw(st.integers(1, 5))
    if perfect:
        bins = draw(st.lists(st.lists(st.integers(1, 30), max_size=6), min_size=destinations, max_size=destinations))
        total = max(1, *(sum(b) for b in bins))
        cost = [c for b in bins for c in [*b, total - sum(b)]]
    else:
        cost = draw(st.lists(st.integers(0, 40), min_size=1, max_size=25))
    default = draw(st.lists(st.integers(0, destinations - 1), min_size=len(cost), max_size=len(cost)))
    current = [draw(st.sampled_from([h, h, draw(st.integers(0, destinations - 1))])) for h in default]
    memory = draw(st.lists(st.integers(1, 20), min_size=len(cost), max_size=len(cost)))
    return statistics(cost, memory, default, current, destinations)


def plans(keys, theta):
    return [min_table(keys, theta), min_migration(keys, theta), mixed(keys, theta, 3)]


def test_min_table_needs_two_entries_in_the_example_of_figure_4():
    """MinTable first moves the two entries back (right) and needs two entries instead of four (left)."""
    cost = [7, 4, 5, 2, 1, 1]
    # By the figure's two entries the hash gives 7, 1 and 4, 5, 2, 1. Any default destinations show that cleaning comes
    # first.
    keys = statistics(cost, [1] * 6, default=[0, 0, 1, 1, 0, 1], current=[0, 0, 0, 1, 1, 1], destinations=2)
    cleaned = min_table(keys, 0.0)
    assert cleaned.moved_back == 2
    assert cleaned.load.tolist() == [10.0, 10.0]
    assert cleaned.table_size(keys) <= 2
    kept = min_migration(keys, 0.0)
    assert kept.load.tolist() == [10.0, 10.0]
    assert kept.moved_back == 0


def test_nothing_moves_if_loads_are_near_the_mean():
    keys = statistics([5, 5, 5, 5.2], [1] * 4, [0, 0, 1, 1], [0, 0, 1, 1], 2)
    for plan in (min_migration(keys, 0.08), mixed(keys, 0.08, 10)):
        assert plan.migrated(keys) == 0
        assert plan.table_size(keys) == 0


def test_the_key_with_the_highest_cost_per_state_moves_first():
    keys = statistics([6, 6, 2], [100, 1, 1], [0, 0, 1], [0, 0, 1], 2)
    plan = min_migration(keys, 0.2)
    assert plan.destination.tolist() == [0, 1, 1]
    assert plan.migrated(keys) == 1.0


def test_nothing_moves_without_load():
    for destinations in (1, 3):
        keys = statistics([0, 0], [1, 1], [0, 0], [0, 0], destinations)
        assert all(plan.migrated(keys) == 0 for plan in plans(keys, 0.0))


@given(intervals(perfect=True), st.sampled_from([0.0, 0.02, 0.08, 0.5]))
def test_imbalance_is_within_the_theorem_if_a_perfect_balance_exists(keys, theta):
    for plan in plans(keys, theta):
        assert imbalance(plan.load) <= 1 + max(theta, bound(keys.destinations)) + ROUNDING


@given(intervals(), st.sampled_from([0.0, 0.08, 0.5]))
def test_a_plan_has_the_resulting_loads_and_table_size(keys, theta):
    for plan in plans(keys, theta):
        assert plan.load == pytest.approx(loads(plan.destination, keys.cost, keys.destinations))
        assert plan.table_size(keys) == np.count_nonzero(plan.destination != keys.default)
    assert min_table(keys, theta).moved_back == len(keys.table)
    assert mixed(keys, theta, 3).destination.tolist() == mixed(keys, theta, 3).destination.tolist()


@given(intervals(), st.sampled_from([0.0, 0.08, 0.5]), st.integers(0, 10))
def test_mixed_keeps_to_the_table_size_or_gives_up_all_entries(keys, theta, table):
    plan = mixed(keys, theta, table)
    assert plan.table_size(keys) <= table or plan.moved_back == len(keys.table)


def test_nothing_moves_for_a_key_that_alone_exceeds_the_limit():
    """Moves would not help: the largest load cannot fall below the cost of that key."""
    keys = statistics([20, 4, 6, 5], [1] * 4, [0, 1, 1, 2], [0, 1, 1, 2], 3)
    for plan in plans(keys, 0.08):
        assert plan.migrated(keys) == 0


def test_one_key_above_the_limit_does_not_fill_the_table():
    """Fang et al., figure 8 with 40 instances: the most frequent key alone costs twice the mean."""
    random = np.random.default_rng(1)
    cost = random.permutation(np.arange(1, 10_001) ** -0.85)
    default = random.integers(0, 40, len(cost))
    keys = statistics(cost, cost, default, default, 40)
    assert cost.max() > 1.5 * cost.sum() / 40
    for plan in (min_table(keys, 0.08), mixed(keys, 0.08, 3000)):
        assert plan.load.max() == pytest.approx(cost.max())
        assert plan.table_size(keys) < 500


def test_an_unreachable_table_size_is_detected_in_few_trials():
    back, trials = 0, 0
    while back < 10_000:
        back, trials = more_given_up(back, 1, 10_000), trials + 1
    assert back == 10_000
    assert trials < 30


@settings(max_examples=50)
@given(intervals(), st.sampled_from([0.08, 0.5]), st.integers(0, 10))
def test_brute_force_is_never_worse(keys, theta, table):
    fast, best = mixed(keys, theta, table), mixed_brute_force(keys, theta, table)
    if fast.table_size(keys) <= table and imbalance(fast.load) <= 1 + theta:
        assert best.table_size(keys) <= table
        assert imbalance(best.load) <= 1 + theta
        assert best.migrated(keys) <= fast.migrated(keys)
