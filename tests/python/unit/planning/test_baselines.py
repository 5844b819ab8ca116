"""The baselines of Fang et al.: Readj and partial key grouping."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.planning.key_routing import KeyStatistics
from penstock.planning.load import imbalance, loads
from penstock.planning.partial_key_grouping import partial_key_grouping
from penstock.planning.readj import readj, readj_tuned


def statistics(cost, default, current=None, memory=None, destinations=2):
    place = np.array(default, dtype=np.int32)
    return KeyStatistics(
        np.array(cost, dtype=float),
        np.ones(len(cost)) if memory is None else np.array(memory, dtype=float),
        place,
        place if current is None else np.array(current, dtype=np.int32),
        destinations,
    )


def test_readj_swaps_keys_if_no_single_move_helps():
    # 6 and 5 against 4 and 3: moving any single key gives one instance a load of 12 or more.
    plan = readj(statistics([6, 5, 4, 3], [0, 0, 1, 1]), 0.0, sigma=0.1)
    assert plan.load.tolist() == [9.0, 9.0]
    assert plan.destination.tolist() == [1, 0, 0, 1]


def test_readj_removes_table_entries_of_light_keys():
    keys = statistics([10, 1, 10], [0, 0, 1], current=[0, 1, 1])
    plan = readj(keys, 0.5, sigma=0.5)
    assert plan.moved_back == 1
    assert plan.destination.tolist() == [0, 0, 1]


def test_readj_moves_the_key_with_less_state():
    keys = statistics([5, 5, 5, 1], [0, 0, 0, 1], memory=[9, 1, 9, 1])
    assert readj(keys, 0.3, sigma=0.1).destination.tolist() == [0, 1, 0, 1]


def test_readj_moves_tracked_keys_only():
    keys = statistics([10, 1, 1, 1], [0, 0, 0, 1])
    assert set(np.flatnonzero(readj(keys, 0.0, sigma=0.9).destination != keys.current)) <= {0}
    assert readj_tuned(keys, 0.0).load.max() <= readj(keys, 0.0, sigma=0.9).load.max()


@given(st.data())
def test_readj_never_increases_the_largest_load(data):
    destinations = data.draw(st.integers(1, 4))
    cost = data.draw(st.lists(st.integers(0, 30), min_size=1, max_size=15))
    default = data.draw(st.lists(st.integers(0, destinations - 1), min_size=len(cost), max_size=len(cost)))
    keys = statistics(cost, default, destinations=destinations)
    plan = readj(keys, 0.1, data.draw(st.sampled_from([0.5, 0.1, 0.01])))
    assert plan.load.max() <= keys.load.max() + 1e-9
    assert plan.load == pytest.approx(loads(plan.destination, keys.cost, destinations))


def test_two_choices_split_a_hot_key():
    rows = 1000
    first, second = np.zeros(rows, dtype=np.int32), np.ones(rows, dtype=np.int32)
    assert partial_key_grouping(first, second, np.ones(rows), 2).tolist() == [500, 500]


def test_two_choices_balance_better_than_one():
    random = np.random.default_rng(3)
    key = random.zipf(1.3, 20_000) % 500
    one, two = random.integers(0, 10, 500).astype(np.int32), random.integers(0, 10, 500).astype(np.int32)
    cost = np.ones(len(key))
    hashed = loads(one[key], cost, 10)
    assert imbalance(partial_key_grouping(one[key], two[key], cost, 10)) < imbalance(hashed)
