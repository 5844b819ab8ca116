"""Elasticutor's refinement of a placement of shards."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from penstock.planning.load import imbalance, loads
from penstock.planning.refinement import refine


@st.composite
def placements(draw):
    tasks = draw(st.integers(1, 6))
    load = draw(st.lists(st.integers(0, 50), min_size=1, max_size=30))
    task = draw(st.lists(st.integers(0, tasks - 1), min_size=len(load), max_size=len(load)))
    return np.array(task, dtype=np.int32), np.array(load, dtype=np.float64), tasks


def test_the_shard_that_balances_the_two_tasks_best_is_moved():
    # Loads are 10 and 2. Moving the shard with load 2 gives 8 and 4; moving the one with 7 gives 3 and 9.
    refined = refine(np.array([0, 0, 0, 1], dtype=np.int32), np.array([7.0, 2.0, 1.0, 2.0]), tasks=2, moves=1)
    assert refined.moves.tolist() == [[1, 0, 1]]
    assert refined.delta_before == 10 / 6
    assert refined.delta_after == 8 / 6


def test_all_tasks_with_the_highest_load_are_relieved():
    task = np.array([0, 0, 1, 1, 2, 3], dtype=np.int32)
    refined = refine(task, np.array([5.0, 5.0, 5.0, 5.0, 0.0, 0.0]), tasks=4, theta=1.0)
    assert refined.delta_after == 1.0
    assert len(refined.moves) == 2


def test_nothing_moves_if_one_shard_is_the_whole_load():
    task = np.array([0, 1, 1], dtype=np.int32)
    refined = refine(task, np.array([100.0, 1.0, 1.0]), tasks=2)
    assert len(refined.moves) == 0
    assert refined.task.tolist() == task.tolist()


@given(placements(), st.sampled_from([1.0, 1.1, 1.2, 2.0]))
def test_the_result_is_balanced_or_no_move_between_the_extremes_helps(placement, theta):
    task, load, tasks = placement
    refined = refine(task, load, tasks, theta)
    assert refined.delta_after <= refined.delta_before
    by_task = loads(refined.task, load, tasks)
    if by_task.max() > theta * by_task.mean():
        most, least = by_task.argmax(), by_task.argmin()
        assert all(
            by_task[least] + load[s] >= by_task[most] for s in np.flatnonzero(refined.task == most) if load[s] > 0
        )


@given(placements(), st.integers(0, 5))
def test_moves_lead_from_the_old_placement_to_the_new_one(placement, limit):
    task, load, tasks = placement
    refined = refine(task, load, tasks, 1.0, moves=limit)
    moved = task.copy()
    for shard, before, after in refined.moves:
        assert moved[shard] == before
        moved[shard] = after
    assert moved.tolist() == refined.task.tolist()
    assert len(refined.moves) <= limit
    assert refined.delta_after == imbalance(loads(moved, load, tasks))
    again = refine(task, load, tasks, 1.0, moves=limit)
    assert again.moves.tolist() == refined.moves.tolist()
