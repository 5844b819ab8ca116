"""Longest processing time first."""

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from penstock.planning.load import deviation, imbalance, loads
from penstock.planning.longest_first import bound, longest_first


def test_the_bound_is_attained():
    # Graham's example: 3, 3, 2, 2, 2 on two machines gives 7 and 5, where 6 and 6 is possible.
    cost = np.array([3.0, 3.0, 2.0, 2.0, 2.0])
    load = loads(longest_first(cost, 2), cost, 2)
    assert sorted(load) == [5.0, 7.0]
    assert deviation(load) == bound(2)


@given(st.lists(st.integers(1, 20), min_size=1, max_size=7), st.integers(1, 3))
def test_the_largest_load_is_within_grahams_bound_of_the_optimum(costs, destinations):
    cost = np.array(costs, dtype=np.float64)
    load = loads(longest_first(cost, destinations), cost, destinations)
    optimum = min(
        loads(np.array(placed, dtype=np.int32), cost, destinations).max()
        for placed in product(range(destinations), repeat=len(costs))
    )
    assert load.max() <= (4 / 3 - 1 / (3 * destinations)) * optimum + 1e-9


@given(st.lists(st.lists(st.integers(1, 30), max_size=8), min_size=1, max_size=5))
def test_imbalance_is_within_the_bound_if_a_perfect_balance_exists(bins):
    total = max(1, *(sum(b) for b in bins))
    cost = np.array([c for b in bins for c in [*b, total - sum(b)]], dtype=np.float64)
    load = loads(longest_first(cost, len(bins)), cost, len(bins))
    assert imbalance(load) <= 1 + bound(len(bins)) + 1e-9
    # The least loaded destination is not further below the mean either (Csirik, Kellerer and Woeginger 1992).
    assert deviation(load) <= bound(len(bins)) + 1e-9
