"""Moves of shards between executors that are worth their cost."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.planning.executors import LOST, Worth, place
from penstock.planning.load import loads

NOW = Worth(bytes_per_ms=1.0, move_ms=0.0, horizon=10, theta=1.1, most=16, window=1)


def planned(executor, load, state=None, cores=(1.0, 1.0), worth=NOW, *, above=0):
    loads_, sizes = np.array(load, dtype=np.float64), [0.0] * len(load) if state is None else state
    return place(
        np.array(executor, dtype=np.int32), loads_, np.array(sizes, dtype=np.float64), np.array(cores), worth, above
    )


def longest(executor, load, cores):
    """Return the time of a batch. A shard runs on one core."""
    work = loads(np.array(executor, dtype=np.int32), np.array(load, dtype=np.float64), len(cores))
    return max((work / cores).max(), *load)


def test_balanced_shards_stay():
    plan = planned([0, 0, 1, 1], [5, 5, 5, 5.5])
    assert (plan.moves.tolist(), plan.reason, plan.above) == ([], "balanced", 0)


def test_a_shard_stays_if_its_move_takes_longer_than_it_saves():
    light, heavy = planned([0, 0, 1], [4, 4, 0], [30, 30, 0]), planned([0, 0, 1], [4, 4, 0], [50, 50, 0])
    assert light.moves.tolist() == [[0, 0, 1]]
    assert (light.gain_ms, light.cost_ms) == (4, 30)
    assert "10 ms gained over 10 batches" in light.reason
    assert (heavy.moves.tolist(), heavy.reason) == ([], "cost exceeds gain")


def test_the_shard_with_the_smallest_state_moves_if_loads_are_equal():
    assert planned([0, 0, 0, 1], [4, 4, 4, 4], [30, 10, 20, 0]).moves.tolist() == [[1, 0, 1]]


def test_executors_with_more_cores_get_more_shards():
    plan = planned([0] * 12, [1] * 12, cores=(1.0, 3.0))
    assert np.bincount(plan.executor).tolist() == [3, 9]
    assert plan.delta_after == 1.0


def test_a_single_shard_that_limits_the_batch_is_reported():
    plan = planned([0, 1, 1], [9, 1, 1])
    assert plan.moves.tolist() == []
    assert plan.reason == "one shard is the limit: 0 has 82% of the work"

    # With two cores per executor, one core has the heavy shard, whatever the other does.
    plan = planned([0, 0, 0, 1], [60, 20, 20, 20], cores=(2.0, 2.0))
    assert plan.moves.tolist() == []
    assert plan.reason == "one shard is the limit: 0 has 50% of the work"


def test_two_equally_busy_executors_are_both_relieved():
    plan = planned([0, 0, 1, 1, 2], [4, 4, 4, 4, 0], cores=(1.0, 1.0, 1.0, 1.0))
    assert plan.delta_before == 2.0
    assert plan.delta_after == 1.0
    assert len(plan.moves) == 2


def test_moves_wait_for_the_stabilisation_window():
    worth = Worth(bytes_per_ms=1.0, move_ms=0.0, window=3)
    above, reasons = 0, []
    for _ in range(3):
        plan = planned([0, 0, 1], [4, 4, 0], worth=worth, above=above)
        above = plan.above
        reasons.append((len(plan.moves), plan.reason.split()[0]))
    assert reasons == [(0, "within"), (0, "within"), (1, "80")]
    assert planned([0, 1], [4, 4], worth=worth, above=2).above == 0


def test_shards_of_a_lost_executor_are_placed_at_once_at_no_cost():
    worth = Worth(window=5, most=0)
    plan = planned([LOST, LOST, 1, LOST], [6, 2, 5, 1], [1e9] * 4, worth=worth)
    assert plan.executor.tolist() == [0, 1, 1, 0]
    assert plan.moves.tolist() == [[0, LOST, 0], [1, LOST, 1], [3, LOST, 0]]
    assert plan.cost_ms == 0


def test_no_load_and_a_single_executor_are_balanced():
    assert planned([0, 1], [0, 0]).reason == "balanced"
    assert planned([0, 0], [3, 4], cores=(2.0,)).reason == "balanced"


@st.composite
def clusters(draw):
    executors = draw(st.integers(1, 4))
    size = draw(st.integers(1, 12))

    def column(values):
        return draw(st.lists(values, min_size=size, max_size=size))

    cores = np.array(draw(st.lists(st.integers(1, 4), min_size=executors, max_size=executors)), dtype=np.float64)
    executor = column(st.integers(0, executors - 1))
    return executor, column(st.integers(0, 20)), column(st.integers(0, 60)), cores


@given(clusters(), st.integers(0, 5))
def test_a_plan_is_never_worse_than_doing_nothing(cluster, most):
    executor, load, state, cores = cluster
    worth = Worth(bytes_per_ms=1.0, move_ms=0.5, horizon=10, theta=1.05, most=most, window=1)
    plan = planned(executor, load, state, cores, worth)
    assert len(plan.moves) <= most
    assert plan.gain_ms == pytest.approx(longest(executor, load, cores) - longest(plan.executor, load, cores))
    assert plan.gain_ms * worth.horizon >= plan.cost_ms - 1e-9
    moved = [shard for shard, _, _ in plan.moves]
    assert plan.cost_ms == pytest.approx(sum(state[shard] + 0.5 for shard in moved))
    assert [load[shard] for shard in moved] == sorted((load[shard] for shard in moved), reverse=True)
    again = planned(executor, load, state, cores, worth)
    assert again.executor.tolist() == plan.executor.tolist()


@given(clusters())
def test_a_single_move_is_optimal_between_two_executors(cluster):
    """Compared with brute force. A step considers two executors only, so a third one can limit its gain."""
    executor, load, state, cores = cluster
    worth = Worth(bytes_per_ms=1.0, move_ms=0.5, horizon=10, theta=1.0, most=1, window=1)
    plan = planned(executor, load, state, cores, worth)
    best = 0.0
    for shard, to in product(range(len(executor)), range(len(cores))):
        moved = list(executor)
        moved[shard] = to
        gained = longest(executor, load, cores) - longest(moved, load, cores)
        best = max(best, worth.horizon * gained - (state[shard] + 0.5) * (to != executor[shard]))
    net = plan.gain_ms * worth.horizon - plan.cost_ms
    assert net <= best + 1e-9
    if len(cores) <= 2:
        assert net == pytest.approx(best)


def test_all_shards_leave_an_executor_without_cores():
    plan = planned([0, 0, 1, LOST], [4, 3, 2, 1], cores=(0.0, 1.0, 1.0))
    assert plan.executor.tolist() == [2, 1, 1, 2]
    assert plan.moves.tolist() == [[0, 0, 2], [1, 0, 1], [3, LOST, 2]]
    assert (plan.cost_ms, plan.delta_before) == (0.0, 1.0)
