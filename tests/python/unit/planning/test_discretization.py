"""Half-linear-half-exponential discretization."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.planning.discretization import discretize, representatives


def test_representatives_are_those_of_the_paper():
    """Fang et al., figure 6: values up to 8 with R = 4 become 8, 4, 2 or 1."""
    assert representatives(8, 2).tolist() == [8, 4, 2, 1]
    assert representatives(17, 3).tolist() == [24, 16, 8, 4, 2, 1]


def test_theorem_3_does_not_hold():
    assert discretize(np.array([3.0]), np.zeros(1, dtype=np.int32), 1, 2).tolist() == [2.0]


def test_values_below_one_keep_their_sum():
    value = np.full(100, 0.1)
    assert discretize(value, np.zeros(100, dtype=np.int32), 1, 3).sum() == pytest.approx(value.sum(), abs=1.0)


@given(
    st.lists(st.tuples(st.floats(0, 500), st.integers(0, 2)), min_size=1, max_size=60),
    st.integers(0, 6),
)
def test_sums_of_groups_deviate_by_less_than_a_step(values, degree):
    value = np.array([v for v, _ in values])
    group = np.array([g for _, g in values], dtype=np.int32)
    chosen = discretize(value, group, 3, degree)
    allowed = {0.0, *representatives(float(value.max()) + 2**degree, degree)}
    assert set(chosen) <= allowed
    for g in range(3):
        assert abs(value[group == g].sum() - chosen[group == g].sum()) < 2**degree + 1e-9
    steps = np.maximum(np.minimum(2.0**degree, value), 1.0)
    assert (np.abs(value - chosen) < steps + 1e-9).all()


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=50))
def test_integers_are_exact_with_degree_zero(values):
    value = np.array(values, dtype=np.float64)
    assert discretize(value, np.zeros(len(values), dtype=np.int32), 1, 0).tolist() == value.tolist()
