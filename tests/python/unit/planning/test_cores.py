"""Assignment of nodes' cores to executors."""

from itertools import product
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from penstock.planning.cores import Demand, assign, assign_as_published, assign_naively, migrated_bytes


def demand(cores, state, intensity=None, local=None):
    executors = len(cores)
    per_core = np.zeros(executors) if intensity is None else np.array(intensity, dtype=np.float64)
    return Demand(
        np.array(cores),
        np.array(state, dtype=np.float64),
        per_core * np.array(cores),
        np.zeros(executors, dtype=np.int64) if local is None else np.array(local),
    )


@st.composite
def problems(draw, nodes=3, executors=3, cores=2):
    """Draw a valid assignment, and demands that can be met."""
    capacity = np.full(nodes, cores)
    slots = draw(st.lists(st.integers(-1, executors - 1), min_size=nodes * cores, max_size=nodes * cores))
    current = np.zeros((nodes, executors), dtype=np.int64)
    for slot, executor in enumerate(slots):
        if executor >= 0:
            current[slot // cores, executor] += 1
    spare = nodes * cores - executors
    more = draw(st.lists(st.integers(0, executors), min_size=spare, max_size=spare))
    needed = [1 + more.count(j) for j in range(executors)]
    state = draw(st.lists(st.integers(0, 9), min_size=executors, max_size=executors))
    intensity = draw(st.lists(st.sampled_from([0.0, 1.0, 1e6]), min_size=executors, max_size=executors))
    local = draw(st.lists(st.integers(0, nodes - 1), min_size=executors, max_size=executors))
    return current, capacity, demand(needed, state, intensity, local)


def least_cost(current, capacity, wanted):
    """Return the least cost of all assignments that give each executor the cores that it needs, or more."""

    def columns(executor):
        return [c for c in product(*(range(k + 1) for k in capacity)) if sum(c) >= wanted.cores[executor]]

    best = inf
    for chosen in product(*(columns(j) for j in range(len(wanted.cores)))):
        after = np.array(chosen).T.copy()
        if (after.sum(axis=1) <= capacity).all():
            best = min(best, migrated_bytes(current, after, wanted.state_bytes))
    return best


def test_nothing_moves_if_demand_is_met():
    current = np.array([[2, 0], [0, 2]])
    made = assign(current, np.array([2, 2]), demand([2, 2], [10, 10]))
    assert made.cores.tolist() == current.tolist()
    assert made.migrated_bytes == 0


def test_state_moves_in_proportion_to_cores():
    # One core on node 0; a second one on node 1 gets half of the state.
    assert migrated_bytes(np.array([[1], [0]]), np.array([[1], [1]]), np.array([8.0])) == 4.0


def test_a_core_on_the_node_that_has_the_state_is_preferred():
    current = np.array([[1, 0], [0, 1]])
    made = assign(current, np.array([2, 2]), demand([2, 1], [100, 100]))
    assert made.cores.tolist() == [[2, 0], [0, 1]]


def test_data_intensive_executors_get_local_cores_only():
    current = np.array([[2, 0], [0, 2]])
    wanted = demand([2, 2], [100, 100], intensity=[1e6, 0.0], local=[1, 0])
    made = assign(current, np.array([2, 2]), wanted, phi=1000.0)
    assert made.cores.tolist() == [[0, 2], [2, 0]]
    assert made.phi == 1000.0


def test_phi_is_doubled_until_an_assignment_is_possible():
    current = np.array([[2, 0], [0, 2]])
    wanted = demand([2, 2], [100, 100], intensity=[5000.0, 3000.0], local=[0, 0])
    made = assign(current, np.array([2, 2]), wanted, phi=1000.0)
    assert made.phi == 4000.0
    assert made.cores.tolist() == current.tolist()


def test_impossible_demands_and_invalid_assignments_are_refused():
    with pytest.raises(ValueError, match="demand is 5 cores, but capacity is 4"):
        assign(np.array([[1, 1], [1, 1]]), np.array([2, 2]), demand([3, 2], [1, 1]))
    with pytest.raises(ValueError, match="more cores of a node"):
        assign(np.array([[2, 1], [0, 0]]), np.array([2, 2]), demand([1, 1], [1, 1]))
    with pytest.raises(ValueError, match="finite"):
        assign(np.array([[1], [0]]), np.array([2, 2]), demand([1], [1], intensity=[inf]))


@given(problems())
def test_every_demand_is_met_within_the_capacity(problem):
    current, capacity, wanted = problem
    made = assign(current, capacity, wanted, phi=100.0)
    assert (made.cores >= 0).all()
    assert (made.cores.sum(axis=1) <= capacity).all()
    assert (made.cores.sum(axis=0) >= wanted.cores).all()
    assert made.migrated_bytes == migrated_bytes(current, made.cores, wanted.state_bytes)
    for executor in np.flatnonzero(wanted.bytes_per_s / wanted.cores >= made.phi):
        elsewhere = np.delete(made.cores[:, executor], wanted.local_node[executor])
        assert elsewhere.sum() == 0
    naive = assign_naively(current, capacity, wanted)
    assert (naive.sum(axis=1) <= capacity).all()
    assert naive.sum(axis=0).tolist() == wanted.cores.tolist()


@given(problems(nodes=4, executors=5, cores=3))
def test_assignments_never_cost_more_than_the_published_ones(problem):
    current, capacity, wanted = problem
    published = assign_as_published(current, capacity, wanted, phi=100.0)
    made = assign(current, capacity, wanted, phi=published.phi)
    assert made.phi == published.phi
    assert made.migrated_bytes <= published.migrated_bytes


@settings(max_examples=30)
@given(problems())
def test_assignments_cost_at_most_twice_the_optimum(problem):
    current, capacity, wanted = problem
    made = assign(current, capacity, wanted, phi=1e9)
    least = least_cost(current, capacity, wanted)
    assert least <= made.migrated_bytes + 1e-9
    assert made.migrated_bytes <= 2 * least + 1e-9
