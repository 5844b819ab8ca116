"""Tasks of regions on executors: enough cores, no more than there are, and little state that moves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.planning.cores import migrated_bytes
from penstock.planning.executor_tasks import MAX_EXECUTORS, RegionTasks, divide


def region(wanted, now, state=None):
    now = np.array(now, dtype=np.int64)
    return RegionTasks(wanted, now, now * 100.0 if state is None else np.array(state, dtype=np.float64))


def tasks(cores, *regions, of=0):
    found = divide(np.array(cores, dtype=np.int64), regions, of)
    return None if found is None else found.tolist()


def test_few_tasks_stay_where_their_state_is():
    assert tasks([1, 1, 1, 1], region(2, [0, 1, 0, 1])) == [0, 1, 0, 1]
    assert tasks([4, 4, 4], region(2, [0, 2, 0])) == [0, 2, 0]


def test_a_task_more_goes_where_a_core_is_free():
    found = tasks([1, 1, 1, 1], region(3, [0, 1, 0, 1]))
    assert (sum(found), found[1], found[3], max(found)) == (3, 1, 1, 1)


def test_a_task_less_is_given_back_where_least_has_to_leave():
    # Half of the state is on each of two executors either way.
    assert tasks([4, 4, 4], region(2, [2, 2, 0])) == [1, 1, 0]
    # Two thirds are on the first: with one task on each, a sixth leaves it; with both there, a third comes.
    assert tasks([4, 4, 4], region(2, [2, 1, 0])) == [1, 1, 0]


def test_tasks_that_were_not_divided_begin_where_the_state_is():
    assert tasks([1, 1, 1], region(1, [0, 0, 0], [10, 70, 20])) == [0, 1, 0]
    assert tasks([2, 2, 2, 2], region(3, [0, 0, 0, 0], [0, 70, 0, 30])) == [0, 2, 0, 1]


def test_regions_get_cores_of_their_own():
    one, other = region(1, [1, 0, 0], [500, 0, 0]), region(1, [1, 0, 0], [100, 0, 0])
    assert tasks([1, 1, 1], one, other) == [1, 0, 0]
    found = tasks([1, 1, 1], one, other, of=1)
    assert (sum(found), found[0]) == (1, 0)


def test_regions_that_need_more_than_there_is_take_turns():
    assert tasks([1, 1, 1], region(2, [1, 1, 0]), region(2, [1, 1, 0])) == [1, 1, 0]


def test_by_cores_where_nothing_else_is_to_be_decided():
    assert tasks([2, 2], region(2, [1, 1])) is None
    assert tasks([2, 2], region(5, [3, 2]), region(1, [1, 0])) is None
    assert tasks([4], region(2, [2])) is None
    many = MAX_EXECUTORS + 1
    assert tasks([1] * many, region(2, [1, 1] + [0] * (many - 2))) is None


def test_another_region_decides_where_there_are_cores_for_both():
    both = region(2, [1, 1]), region(2, [2, 0])
    assert [tasks([2, 2], *both, of=of) for of in (0, 1)] in ([[0, 2], [2, 0]], [[1, 1], [1, 1]])


@st.composite
def applications(draw):
    cores = draw(st.lists(st.integers(1, 4), min_size=2, max_size=6))
    regions = []
    for _ in range(draw(st.integers(1, 4))):
        now = draw(st.lists(st.integers(0, 4), min_size=len(cores), max_size=len(cores)))
        state = draw(st.lists(st.floats(0, 1e9), min_size=len(cores), max_size=len(cores)))
        regions.append(RegionTasks(draw(st.integers(1, 6)), np.array(now), np.array(state)))
    return np.array(cores), regions


@given(applications())
def test_each_region_has_what_it_wants_and_no_core_is_given_twice(application):
    cores, regions = application
    turns = sum(r.wanted for r in regions) > cores.sum()
    given_to = []
    for of, region_of in enumerate(regions):
        found = divide(cores, regions, of)
        if found is not None:
            assert found.sum() == region_of.wanted
            assert (found >= 0).all()
            assert (found <= cores).all()
            given_to.append(found)
    if not turns and len(regions) > 1:
        assert len(given_to) == len(regions)
        assert (sum(given_to) <= cores).all()


@given(applications())
def test_what_has_its_cores_keeps_them(application):
    cores, regions = application
    first = regions[0]
    now = np.minimum(first.now, cores)
    kept = RegionTasks(max(1, int(now.sum())), now, first.state_bytes)
    found = divide(cores, [kept], 0)
    if found is not None and now.any():
        assert found.tolist() == now.tolist()
        assert migrated_bytes(now[:, None], found[:, None], np.array([first.state_bytes.sum()])) == 0


@pytest.mark.parametrize("free", [0, 3])
def test_ties_go_to_the_first_executor(free):
    now = [0, 0, 0, 0]
    now[free] = 1
    assert tasks([1, 1, 1, 1], region(2, now)) == ([1, 1, 0, 0] if free == 0 else [1, 0, 0, 1])
