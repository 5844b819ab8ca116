"""Forecasts of the load, and the choice among them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.planning.forecast import AVERAGE, LAST, PERIODIC, Forecaster


def after(loads, **options):
    forecaster = Forecaster(loads.shape[1], **options)
    for load in loads:
        forecaster.observe(load)
    return forecaster.forecast()


def test_the_forecast_is_zero_before_the_first_batch():
    forecast = Forecaster(3).forecast()
    assert forecast.load.tolist() == [0, 0, 0]
    assert (forecast.method, forecast.error) == (LAST, {})


def test_a_constant_load_is_forecast_as_the_last_one():
    forecast = after(np.tile([1.0, 2.0], (20, 1)))
    assert (forecast.method, forecast.load.tolist()) == (LAST, [1.0, 2.0])
    assert forecast.error[LAST] == 0


def test_a_drifting_load_is_forecast_as_the_last_one():
    random = np.random.default_rng(1)
    assert after(100 + np.cumsum(random.normal(size=(60, 8)), axis=0)).method == LAST


def test_a_noisy_load_is_forecast_as_the_average():
    random = np.random.default_rng(1)
    forecast = after(random.uniform(0, 10, (100, 50)))
    assert forecast.method == AVERAGE
    assert forecast.error[AVERAGE] < forecast.error[LAST]
    assert forecast.load.mean() == pytest.approx(5, abs=1)


@pytest.mark.parametrize("period", [2, 7, 24])
def test_the_shortest_period_is_learnt_not_a_multiple_of_it(period):
    random = np.random.default_rng(period)
    pattern = random.uniform(1, 10, (period, 5))
    loads = np.array([pattern[b % period] for b in range(4 * period)]) * random.uniform(0.99, 1.01, (4 * period, 5))
    forecast = after(loads, longest_period=64)
    assert forecast.method == PERIODIC
    assert forecast.period % period == 0
    assert forecast.load == pytest.approx(pattern[0], rel=0.02)
    assert after(np.tile(pattern, (4, 1)), longest_period=64).period == period


def test_a_period_that_ends_is_no_longer_forecast():
    pattern = np.array([[1.0, 9.0], [9.0, 1.0]])
    loads = np.concatenate((np.tile(pattern, (20, 1)), np.tile([5.0, 5.0], (60, 1))))
    assert after(loads).method != PERIODIC or after(loads).load.tolist() == [5.0, 5.0]


def test_batches_without_load_are_ignored():
    loads = np.array([[1.0, 3.0], [0.0, 0.0], [1.0, 3.0]])
    assert set(after(loads).error) == {LAST, AVERAGE}


def test_a_changed_number_of_items_is_refused():
    forecaster = Forecaster(2)
    with pytest.raises(ValueError, match="expected 2 loads, as in earlier batches, found 3"):
        forecaster.observe(np.zeros(3))


@given(st.lists(st.lists(st.floats(0, 100), min_size=3, max_size=3), min_size=1, max_size=30))
def test_forecasts_are_within_the_observed_loads(loads):
    seen = np.array(loads)
    forecast = after(seen, longest_period=8)
    assert (forecast.load >= 0).all()
    assert (forecast.load <= seen.max(axis=0) + 1e-9).all()
    assert all(error >= 0 for error in forecast.error.values())
    if forecast.error:
        assert forecast.error[forecast.method] == min(forecast.error.values())
    assert after(seen, longest_period=8).load.tolist() == forecast.load.tolist()
