"""Choice of the number of tasks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.planning.task_count import (
    PRIOR_PER_TASK_MS,
    TaskCount,
    TaskOverhead,
    best_count,
    busiest,
    follow,
    learn,
)


def learnt(batches):
    known = TaskOverhead()
    for tasks, rest_ms in batches:
        known = learn(known, tasks, 100.0 + rest_ms, 100.0)
    return known


def test_fixed_and_per_task_overhead_are_learnt():
    known = learnt([(n, 20.0 + 3.0 * n) for n in (2, 8, 16, 4, 12)] * 20)
    assert known.per_task_ms == pytest.approx(3.0, rel=0.02)
    assert known.fixed_ms == pytest.approx(20.0, rel=0.05)


def test_overhead_per_task_is_assumed_until_the_number_of_tasks_varies():
    known = learnt([(4, 50.0)] * 30)
    assert known.per_task_ms == pytest.approx(PRIOR_PER_TASK_MS)
    assert known.ms(4) == pytest.approx(50.0)


def test_older_batches_are_forgotten():
    known = learnt([(n, 10.0 * n) for n in (2, 8)] * 50 + [(n, 1.0 * n) for n in (2, 8)] * 100)
    assert known.per_task_ms == pytest.approx(1.0, rel=0.1)


def test_quiet_streams_get_one_task_and_busy_streams_all():
    overhead = TaskOverhead(per_task_ms=2.0, fixed_ms=10.0)
    assert best_count(overhead, np.full(256, 0.01), most=16) == 1
    assert best_count(overhead, np.full(256, 100.0), most=16) == 16
    # 800 / n + 2 n is least at n = 20.
    assert best_count(overhead, np.full(400, 2.0), most=64) == 20


def test_the_heaviest_shard_limits_the_useful_number_of_tasks():
    load = np.array([100.0, *np.full(100, 1.0)])
    assert best_count(TaskOverhead(), load, most=64) == 2


def test_tasks_are_added_at_once_and_removed_after_a_window():
    overhead, busy, quiet = TaskOverhead(), np.full(64, 50.0), np.full(64, 0.1)
    count = follow(TaskCount(1), overhead, busy, 8)
    assert count.tasks == 8
    assert "predicted with 1 tasks" in count.reason
    for _ in range(4):
        count = follow(count, overhead, quiet, 8)
        assert (count.tasks, count.reason) == (8, "within stabilisation window")
    count = follow(count, overhead, quiet, 8)
    assert count.tasks < 8


def test_a_peak_within_the_window_keeps_the_tasks():
    overhead, busy, quiet = TaskOverhead(), np.full(64, 50.0), np.full(64, 0.1)
    count = TaskCount(8)
    for batch in range(40):
        count = follow(count, overhead, busy if batch % 4 == 0 else quiet, 8)
        assert count.tasks == 8


def test_a_small_gain_does_not_change_the_number_of_tasks():
    load = np.full(400, 2.0)
    count = follow(TaskCount(18), TaskOverhead(), load, 64)
    assert (count.tasks, count.reason) == (18, "within hysteresis")


def test_the_number_of_tasks_follows_fewer_cores_at_once():
    count = follow(TaskCount(8), TaskOverhead(), np.full(64, 50.0), 4)
    assert (count.tasks, count.reason) == (4, "4 tasks can run at once")


@given(
    st.lists(st.floats(0, 100), min_size=1, max_size=30),
    st.floats(0, 20),
    st.integers(1, 32),
    st.integers(1, 32),
)
def test_the_number_of_tasks_settles_within_the_margin_of_the_best(loads, per_task, most, start):
    overhead, load = TaskOverhead(per_task_ms=per_task, fixed_ms=5.0), np.array(loads)

    def ms(tasks):
        return overhead.ms(tasks) + busiest(load, tasks)

    count = TaskCount(start)
    for _ in range(8):
        count = follow(count, overhead, load, most)
    rest = follow(count, overhead, load, most)
    assert rest.tasks == count.tasks
    assert 1 <= rest.tasks <= most
    assert ms(rest.tasks) * 0.95 <= min(ms(n) for n in range(1, most + 1)) + 1e-9
