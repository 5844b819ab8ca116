"""Generated keys whose costs fluctuate."""

import numpy as np
import pytest
from penstock.workloads.key_costs import fluctuate, grown, zipf


def test_costs_follow_zipf():
    costs = zipf(10_000, 0.85, 15, seed=1)
    ordered = np.sort(costs.cost)[::-1]
    assert costs.cost.mean() == pytest.approx(1.0)
    assert ordered[99] / ordered[9] == pytest.approx(10**-0.85)
    assert set(costs.default) == set(range(15))


@pytest.mark.parametrize("change", [0.1, 0.5, 1.0])
def test_a_load_grows_by_the_requested_share(change):
    before = zipf(100_000, 0.85, 15, seed=2)
    after = fluctuate(before, before.default, change, seed=3)
    assert sorted(after.cost) == pytest.approx(sorted(before.cost))
    # The last swap may move the most expensive key, a third of a load.
    assert change <= grown(before, after, before.default) <= change + 0.4
    assert after.cost.tolist() == fluctuate(before, before.default, change, seed=3).cost.tolist()
