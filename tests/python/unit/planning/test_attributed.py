"""Costs of rows learnt over several batches, and when they are trusted."""

import numpy as np
import pytest
from penstock.planning.attributed import FEWEST, Attributed
from penstock.planning.attribution import Batch
from penstock.planning.load import loads
from penstock.planning.longest_first import longest_first

SHARDS, TASKS = 64, 8


def played(cost, batches, noise, seed, bind=None):
    """Play batches whose tasks take the cost of their rows, with noise. Return the costs learnt after each batch."""
    random = np.random.default_rng(seed)
    learner, learnt = Attributed(), []
    task = (np.arange(SHARDS) % TASKS).astype(np.int32)
    for _ in range(batches):
        rows = random.poisson(200, SHARDS).astype(float)
        if bind is not None and learnt and learnt[-1] is not None:
            task = bind(rows * learnt[-1])
        work = loads(task, rows * cost, TASKS) * random.normal(1.0, noise, TASKS).clip(0.5)
        learnt.append(learner.observe(Batch(task, rows, work)))
    return learnt


@pytest.mark.parametrize("seed", range(10))
def test_costs_learnt_from_noise_are_not_trusted(seed):
    assert all(cost is None for cost in played(np.ones(SHARDS), 40, 0.05, seed))


@pytest.mark.parametrize("seed", range(10))
def test_an_expensive_shard_is_found_after_enough_moves(seed):
    cost = np.ones(SHARDS)
    cost[seed * 5] = 20.0
    learnt = played(cost, 40, 0.05, seed, lambda load: longest_first(load, TASKS))
    trusted = next(i for i, found in enumerate(learnt) if found is not None)
    assert FEWEST <= trusted <= 2 * FEWEST
    last = learnt[-1]
    assert last is not None
    assert last.argmax() == seed * 5
    balanced = longest_first(last * 200, TASKS)
    true = loads(balanced, cost * 200, TASKS)
    assert true.max() <= max(1.25 * true.mean(), 20.0 * 200 * 1.05)


def test_learning_restarts_when_the_number_of_shards_changes():
    learner = Attributed()
    for shards in (8, 9):
        rows, cost = np.full(shards, 100.0), np.ones(shards)
        cost[0] = 50.0
        task = (np.arange(shards) % 2).astype(np.int32)
        found = [learner.observe(Batch(task, rows, loads(task, rows * cost, 2))) for _ in range(FEWEST + 1)]
        assert [f is None for f in found] == [True] * FEWEST + [False]


def test_a_new_shard_starts_anew_and_other_shards_keep_their_costs():
    random = np.random.default_rng(7)
    cost = np.ones(SHARDS)
    cost[5], cost[9] = 20.0, 8.0
    learner = Attributed()

    def observed(cost, batches):
        for _ in range(batches):
            rows = random.poisson(200, len(cost)).astype(float)
            task = random.integers(0, TASKS, len(cost)).astype(np.int32)
            found = learner.observe(Batch(task, rows, loads(task, rows * cost, TASKS)))
        return found

    before = observed(cost, 12)
    # One shard is added and one is removed. The past cost of the removed one is not charged to another shard.
    source = np.append(np.delete(np.arange(SHARDS), 9), -1)
    learner = learner.rearranged(source)
    after = observed(np.append(np.delete(cost, 9), 12.0), 1)
    assert before is not None
    assert after is not None
    assert after[:-1] == pytest.approx(before[source[:-1]], rel=0.25, abs=0.25)
    assert observed(np.append(np.delete(cost, 9), 12.0), 12)[-1] == pytest.approx(12.0, rel=0.25)


def test_batches_without_work_or_rows_give_no_costs():
    learner = Attributed()
    task = np.zeros(4, dtype=np.int32)
    for rows, work in ((0.0, 0.0), (0.0, 5.0), (10.0, 0.0)) * 4:
        assert learner.observe(Batch(task, np.full(4, rows), np.array([work]))) is None
