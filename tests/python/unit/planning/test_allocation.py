"""Allocation of cores to a network of queues."""

from itertools import product
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.planning.allocation import Queue, allocate, erlang_b, erlang_c


@pytest.mark.parametrize(
    ("cores", "offered", "expected"),
    # By hand: C(1, a) = a; C(2, a) = a^2 / (2 + a); C(3, 2) = 4/9.
    [(1, 0.3, 0.3), (2, 1.0, 1 / 3), (2, 1.5, 2.25 / 3.5), (3, 2.0, 4 / 9), (5, 0.0, 0.0)],
)
def test_erlang_c(cores, offered, expected):
    assert erlang_c(cores, offered) == pytest.approx(expected, rel=1e-12)


def test_erlang_b_does_not_overflow():
    assert erlang_b(10_000, 9_000.0) == pytest.approx(0.0, abs=1e-20)
    assert 0.0 < erlang_b(1000, 1000.0) < 0.03


def test_one_core_is_an_mm1_queue():
    # Mean number in the system: rho / (1 - rho).
    assert Queue(0.8, 1).tuples == pytest.approx(4.0)


def test_the_fewest_cores_that_reach_the_target_are_allocated():
    allocation = allocate(np.array([8.0]), np.array([10.0]), source=8.0, target=0.51, available=10)
    assert allocation.cores.tolist() == [1]
    assert allocation.latency == pytest.approx(0.5)
    assert allocation.reached
    faster = allocate(np.array([8.0]), np.array([10.0]), source=8.0, target=0.2, available=10)
    assert faster.cores.tolist() == [2]


def test_an_integer_load_needs_one_core_more_than_its_value():
    assert allocate(np.array([20.0]), np.array([10.0]), 20.0, inf, 10).cores.tolist() == [3]
    assert allocate(np.array([21.0]), np.array([10.0]), 21.0, inf, 10).cores.tolist() == [3]


def test_too_few_cores_go_to_the_queue_with_the_highest_utilisation():
    allocation = allocate(np.array([40.0, 10.0]), np.array([10.0, 10.0]), 40.0, 1.0, 4)
    assert allocation.cores.tolist() == [3, 1]
    assert allocation.latency == inf
    assert not allocation.reached


def test_fewer_cores_than_executors_are_refused():
    with pytest.raises(ValueError, match="1 cores for 2 executors"):
        allocate(np.array([1.0, 1.0]), np.array([10.0, 10.0]), 1.0, 1.0, 1)


@given(
    st.lists(st.tuples(st.floats(0.1, 30.0), st.floats(5.0, 20.0)), min_size=1, max_size=3),
    st.integers(0, 4),
)
def test_no_other_allocation_of_the_same_number_of_cores_is_faster(executors, spare):
    arrival, service = np.array(executors).T
    least = int((np.floor(arrival / service) + 1).sum())
    allocation = allocate(arrival, service, 1.0, 0.0, least + spare)
    assert allocation.cores.sum() == least + spare
    offered = arrival / service
    for cores in product(range(1, least + spare + 1), repeat=len(arrival)):
        if sum(cores) == least + spare and (np.array(cores) > offered).all():
            latency = sum(Queue(float(a), k).tuples for a, k in zip(offered, cores, strict=True))
            assert latency >= allocation.latency * (1 - 1e-9)
