"""Division of the tasks of regions among executors: it respects their cores and moves little state."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.planning.cores import migrated_bytes
from penstock.planning.executor_tasks import MAX_EXECUTORS, RegionTasks, divide


def region(wanted, now, state=None):
    now = np.array(now, dtype=np.int64)
    return RegionTasks(wanted, now, now * 100.0 if state is None else np.array(state, dtype=np.float64))


def tasks(cores, *regions, index=0):
    found = divide(np.array(cores, dtype=np.int64), regions, index)
    return None if found is None else found.tolist()


def test_few_tasks_stay_on_the_executors_that_have_their_state():
    assert tasks([1, 1, 1, 1], region(2, [0, 1, 0, 1])) == [0, 1, 0, 1]
    assert tasks([4, 4, 4], region(2, [0, 2, 0])) == [0, 2, 0]


def test_an_additional_task_goes_to_an_executor_with_a_free_core():
    found = tasks([1, 1, 1, 1], region(3, [0, 1, 0, 1]))
    assert (sum(found), found[1], found[3], max(found)) == (3, 1, 1, 1)


def test_a_task_is_removed_so_that_the_least_state_moves():
    # Half of the state is on each of two executors, before and after.
    assert tasks([4, 4, 4], region(2, [2, 2, 0])) == [1, 1, 0]
    # Two thirds of the state are on the first executor. With one task on each, a sixth leaves it; with both tasks
    # on the first, a third would move there.
    assert tasks([4, 4, 4], region(2, [2, 1, 0])) == [1, 1, 0]


def test_the_first_division_places_tasks_where_the_state_is():
    assert tasks([1, 1, 1], region(1, [0, 0, 0], [10, 70, 20])) == [0, 1, 0]
    assert tasks([2, 2, 2, 2], region(3, [0, 0, 0, 0], [0, 70, 0, 30])) == [0, 2, 0, 1]


def test_regions_get_separate_cores():
    one, other = region(1, [1, 0, 0], [500, 0, 0]), region(1, [1, 0, 0], [100, 0, 0])
    assert tasks([1, 1, 1], one, other) == [1, 0, 0]
    found = tasks([1, 1, 1], one, other, index=1)
    assert (sum(found), found[0]) == (1, 0)


def test_regions_share_cores_if_there_are_too_few_for_all():
    assert tasks([1, 1, 1], region(2, [1, 1, 0]), region(2, [1, 1, 0])) == [1, 1, 0]


def test_there_is_no_division_if_there_is_nothing_to_decide():
    assert tasks([2, 2], region(2, [1, 1])) is None
    assert tasks([2, 2], region(5, [3, 2]), region(1, [1, 0])) is None
    assert tasks([4], region(2, [2])) is None
    many = MAX_EXECUTORS + 1
    assert tasks([1] * many, region(2, [1, 1] + [0] * (many - 2))) is None


def test_divisions_of_two_regions_do_not_overlap():
    both = region(2, [1, 1]), region(2, [2, 0])
    assert [tasks([2, 2], *both, index=index) for index in (0, 1)] in ([[0, 2], [2, 0]], [[1, 1], [1, 1]])


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
def test_each_region_gets_its_tasks_and_no_core_is_used_twice(application):
    cores, regions = application
    too_few_cores = sum(r.wanted for r in regions) > cores.sum()
    divisions = []
    for index, region in enumerate(regions):
        found = divide(cores, regions, index)
        if found is not None:
            assert found.sum() == region.wanted
            assert (found >= 0).all()
            assert (found <= cores).all()
            divisions.append(found)
    if not too_few_cores and len(regions) > 1:
        assert len(divisions) == len(regions)
        assert (sum(divisions) <= cores).all()


@given(applications())
def test_a_region_that_has_its_cores_keeps_them(application):
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
