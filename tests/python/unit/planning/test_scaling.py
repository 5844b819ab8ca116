"""Number of executors for a target latency."""

from itertools import pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.planning.scaling import Batch, Bounds, Load, Scale, follow, latency_ms, learn

BOUNDS = Bounds(target_ms=1000.0, cores=2, least=1, most=8)


def test_the_load_is_learnt_from_a_batch():
    load = learn(None, Batch(rows=1000, batch_ms=900.0, interval_ms=950.0, work_ms=1520.0, cores=2))
    assert load == Load(offered=1.6, rest_ms=140.0, row_ms=1.52, interval_ms=0.0)
    by_clock = learn(None, Batch(rows=0, batch_ms=200.0, interval_ms=1000.0, work_ms=0.0, cores=2))
    assert by_clock == Load(0.0, 200.0, 0.0, 1000.0)


def test_more_work_is_learnt_at_once_and_less_work_gradually():
    known = Load(1.0, 100.0, 1.0, 0.0)
    more = learn(known, Batch(1000, 1600.0, 1600.0, 3200.0, 2))
    less = learn(known, Batch(1000, 100.0, 100.0, 0.0, 2))
    assert more.offered == pytest.approx(2.0)
    assert less.offered == pytest.approx(0.7)


def test_latency_of_consecutive_batches_is_infinite_if_load_reaches_the_cores():
    load = Load(offered=3.0, rest_ms=100.0, row_ms=0.0, interval_ms=0.0)
    assert [latency_ms(load, cores) for cores in (2, 3)] == [inf, inf]
    # A batch takes 100 / (1 - 3/4) = 400 ms, and a row waits half a batch before it.
    assert latency_ms(load, 4) == pytest.approx(600.0)
    assert latency_ms(load, 6) == pytest.approx(300.0)


def test_rows_of_batches_at_intervals_wait_for_half_an_interval():
    load = Load(offered=1.0, rest_ms=100.0, row_ms=0.0, interval_ms=1000.0)
    assert latency_ms(load, 2) == pytest.approx(500 + 600)
    assert latency_ms(load, 4) == pytest.approx(500 + 350)


def test_expensive_rows_wait_for_a_core_as_in_the_paper():
    # Erlang's C of 2 cores with 1 Erlang is 1/3; the wait is C / (k mu - lambda).
    load = Load(offered=1.0, rest_ms=0.0, row_ms=300.0, interval_ms=0.0)
    assert latency_ms(load, 2) == pytest.approx(1 / 3 * 300.0)


def batch(offered, rest_ms=100.0, cores=4):
    """Return a batch that followed the previous one at once, on this number of cores."""
    took = rest_ms / (1 - offered / cores) if offered < cores else 5000.0
    return Batch(1000, took, took, offered * took, cores)


def test_the_fewest_executors_that_reach_the_target_are_requested():
    scale = follow(Scale(2, ""), batch(3.9), BOUNDS)
    # 1.5 * 100 / (1 - 3.9 / 4) = 6000 ms, and 429 ms with 6 cores. In addition, rows of 15.6 ms wait for a core.
    assert (scale.executors, scale.reason) == (3, "6147 ms with 2 executors, 431 ms with 3")


def test_an_unreachable_target_is_reported_and_wastes_no_executors():
    scale = follow(Scale(2, ""), batch(1.0, rest_ms=900.0), BOUNDS)
    # 1.5 * 900 / (1 - 1 / k) ms: 1800 with 4 cores, 1500 with 10, and 1440 with 16.
    assert scale.executors == 5
    assert scale.reason.startswith("the target is out of reach: ")
    by_clock = follow(Scale(2, ""), Batch(1000, 150.0, 4000.0, 100.0, 2), BOUNDS)
    assert (by_clock.executors, by_clock.reason.split(":")[0]) == (2, "the target is out of reach")
    too_much = follow(Scale(2, ""), batch(40.0), BOUNDS)
    assert too_much.executors == 8
    assert too_much.reason.endswith("more work than cores, even with 8 executors")


def test_executors_are_removed_after_a_window_down_to_its_highest_need():
    scale, seen = Scale(6, ""), []
    for turn in range(BOUNDS.window):
        scale = follow(scale, batch(5.0 if turn == 3 else 0.5, cores=12), BOUNDS)
        seen.append(scale.executors)
    assert seen[:-1] == [6] * 9
    assert scale.executors == 4
    assert follow(Scale(1, ""), batch(0.1, cores=2), BOUNDS).executors == 1


def test_a_need_within_the_window_restarts_it():
    scale = Scale(6, "")
    for _ in range(BOUNDS.window - 1):
        scale = follow(scale, batch(0.5, cores=12), BOUNDS)
    scale = follow(scale, batch(11.0, cores=12), BOUNDS)
    assert (scale.executors, scale.fewer) == (7, ())


@given(st.floats(0.0, 20.0), st.floats(1.0, 500.0), st.floats(0.0, 50.0), st.sampled_from([0.0, 300.0, 2000.0]))
def test_more_cores_are_never_slower(offered, rest_ms, row_ms, interval_ms):
    load = Load(offered, rest_ms, row_ms, interval_ms)
    times = [latency_ms(load, cores) for cores in range(1, 40)]
    assert all(after <= before * (1 + 1e-9) for before, after in pairwise(times))


@given(st.lists(st.tuples(st.floats(0.0, 30.0), st.floats(1.0, 2000.0)), min_size=1, max_size=30), st.integers(1, 8))
def test_the_number_of_executors_is_within_its_bounds(batches, start):
    scale = Scale(start, "")
    for offered, rest_ms in batches:
        before = scale
        cores = before.executors * BOUNDS.cores
        scale = follow(before, batch(offered, rest_ms, cores), BOUNDS)
        assert BOUNDS.least <= scale.executors <= BOUNDS.most
        assert scale.reason
        assert follow(before, batch(offered, rest_ms, cores), BOUNDS) == scale
        if scale.executors < before.executors:
            assert len(before.fewer) == BOUNDS.window - 1
