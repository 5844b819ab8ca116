"""Cost per row of each shard, derived from the times of whole tasks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.planning.attribution import Batch, cost_per_row
from penstock.planning.load import loads


def batch(task, rows, cost, tasks):
    placed, counts = np.array(task, dtype=np.int32), np.array(rows, dtype=np.float64)
    return Batch(placed, counts, loads(placed, counts * np.array(cost, dtype=np.float64), tasks))


def shuffled(count, shards, tasks, cost, seed):
    random = np.random.default_rng(seed)
    return [batch(random.integers(0, tasks, shards), random.integers(1, 50, shards), cost, tasks) for _ in range(count)]


def test_costs_of_shards_that_change_tasks_are_separated():
    cost = [1.0, 1.0, 20.0, 1.0, 5.0, 0.0]
    found = cost_per_row(shuffled(30, 6, 2, cost, 1), prior=1e-9)
    assert found == pytest.approx(cost, abs=1e-3)


def test_the_pull_towards_a_common_cost_is_weaker_than_the_measurements():
    cost = np.ones(64)
    cost[7] = 20.0
    found = cost_per_row(shuffled(40, 64, 8, cost, 2))
    assert found[7] == pytest.approx(20.0, rel=0.25)
    assert np.abs(np.delete(found, 7) - 1.0).max() < 1.0
    rows = np.full(64, 25.0)
    assert (found * rows).sum() == pytest.approx((cost * rows).sum(), rel=0.1)


def test_shards_that_are_always_together_share_the_cost_by_rows():
    batches = [batch([0, 0, 1], [30, 10, 20], [3.0, 3.0, 1.0], 2)] * 5
    found = cost_per_row(batches, prior=1e-6)
    assert found[2] == pytest.approx(1.0, abs=1e-3)
    assert found @ [30, 10, 0] == pytest.approx(120, rel=1e-3)


def test_equal_costs_are_found_from_few_batches():
    assert cost_per_row(shuffled(3, 10, 4, np.full(10, 2.5), 3)) == pytest.approx(2.5)


def test_work_of_a_task_without_rows_is_not_attributed():
    made = batch([0, 0], [10, 10], [1.0, 1.0], 2)
    made.work[1] = 100.0
    assert cost_per_row([made]) == pytest.approx([1.0, 1.0])


def test_older_batches_count_less():
    before, after = [1.0] * 8, [1.0] * 7 + [9.0]
    batches = shuffled(40, 8, 3, before, 4) + shuffled(10, 8, 3, after, 5)
    assert cost_per_row(batches, forgetting=0.3)[7] > 7.5
    assert cost_per_row(batches, forgetting=0.0)[7] < 6.0


def test_costs_without_batches_or_without_rows():
    assert len(cost_per_row([])) == 0
    assert cost_per_row([batch([0, 1], [0, 0], [1.0, 1.0], 2)]).tolist() == [0, 0]
    one = cost_per_row([batch([0, 1], [4, 0], [2.0, 1.0], 2)])
    assert one == pytest.approx([2.0, 2.0])


@st.composite
def measured(draw):
    shards, tasks = draw(st.integers(1, 8)), draw(st.integers(1, 4))
    batches = []
    for _ in range(draw(st.integers(1, 6))):
        task = draw(st.lists(st.integers(0, tasks - 1), min_size=shards, max_size=shards))
        rows = draw(st.lists(st.integers(0, 20), min_size=shards, max_size=shards))
        work = draw(st.lists(st.integers(0, 100), min_size=tasks, max_size=tasks))
        # A task without rows has no work.
        work = [w if any(r for t, r in zip(task, rows, strict=True) if t == at) else 0 for at, w in enumerate(work)]
        batches.append(
            Batch(np.array(task, dtype=np.int32), np.array(rows, dtype=np.float64), np.array(work, dtype=np.float64))
        )
    return batches


@given(measured(), st.sampled_from([0.05, 1.0]))
def test_costs_are_not_negative_and_optimal(batches, prior):
    """Karush-Kuhn-Tucker conditions: the slope is 0 for a positive cost, and not negative for a cost of 0."""
    found = cost_per_row(batches, prior=prior)
    assert (found >= 0).all()
    weight = 0.95 ** np.arange(len(batches) - 1, -1, -1)
    rows = np.stack([b.rows for b in batches])
    total = (weight @ rows).sum()
    if total == 0:
        return
    common = sum(w * b.work.sum() for w, b in zip(weight, batches, strict=True)) / total
    pull = prior * (weight[:, None] * rows**2).sum(axis=0) / weight.sum()
    slope = pull * (found - common)
    for w, b in zip(weight, batches, strict=True):
        over = loads(b.task, b.rows * found, len(b.work)) - b.work
        slope += w * b.rows * over[b.task]
    scale = max(1.0, common) * max(1.0, float((rows**2).sum()))
    assert (slope >= -1e-4 * scale).all()
    assert (np.abs(slope[found > 1e-6 * max(1.0, common)]) <= 1e-4 * scale).all()
    assert cost_per_row(batches, prior=prior).tolist() == found.tolist()
