"""Targets for batches and for the starts of queries."""

import pytest
from measured_series import batch, series
from penstock.benchmarks import samples, targets
from penstock.benchmarks.targets import Target
from penstock.cli.bench import of_cases


def overhead_series(times, manager="local"):
    return [series([batch(ms)], manager=manager, side=side, operator="aggregation") for side, ms in times.items()]


def test_overhead_is_compared_with_plain_sparks_faster_provider():
    measured = overhead_series({"penstock": 100, "hdfs-2": 95, "rocksdb-2": 150, "hdfs-200": 700, "rocksdb-200": 490})
    few, many = targets.overhead(measured, "aggregation", ["local"], 2)
    assert few.value == pytest.approx(100 / 95)
    assert few.met
    assert many.value == pytest.approx(4.9)
    assert not many.met


def test_the_target_is_higher_with_the_default_file_manager():
    measured = overhead_series({"penstock": 100, "hdfs-2": 95, "rocksdb-changelog-200": 1400}, "default")
    _, many = targets.overhead(measured, "aggregation", ["default"], 2)
    assert (many.value, many.target, many.met) == (14, 15, False)


def test_other_operators_are_compared_with_few_partitions_only():
    (only,) = targets.overhead(overhead_series({"penstock": 115, "hdfs-2": 100}), "join", ["local"], 2)
    assert (only.value, only.target, only.met) == (1.15, 1.15, True)


def test_a_target_that_was_not_measured_is_not_met():
    few, many = targets.overhead(overhead_series({"hdfs-2": 100}), "aggregation", ["local"], 2)
    assert few.value is None
    assert many.value is None
    assert not few.met
    assert not many.met


def test_each_unrouted_plan_is_compared_with_the_same_plan_in_plain_spark():
    measured = [
        series([batch(ms)], manager="local", plan=plan, side=side)
        for plan, side, ms in [
            ("node below", "penstock", 130),
            ("node below", "hdfs-2", 100),
            ("node below", "rocksdb-2", 110),
            ("node handing over", "hdfs-2", 10),
            ("node between", "penstock", 300),
            ("cached table", "penstock", 120),
            ("cached table", "rocksdb-2", 100),
        ]
    ]
    below, handing_over, cached = targets.unrouted(measured, ["local"], 2)
    assert (below.value, below.met) == (1.3, False)
    assert handing_over.value is None
    assert (cached.value, cached.met) == (1.2, True)


def test_a_start_is_compared_with_the_faster_rocksdb():
    measured = [
        series([{**batch(9), "start": ms}], manager="local", side=side)
        for side, ms in {"penstock": 50, "hdfs-2": 10, "rocksdb-2": 90, "rocksdb-changelog-2": 60}.items()
    ]
    (only,) = targets.recover(measured, ["local"])
    assert (only.value, only.met) == (pytest.approx(50 / 60), True)
    (unknown,) = targets.recover(measured[1:], ["local"])
    assert not unknown.met


def test_batches_with_large_and_small_state_are_compared():
    measured = [
        series([batch(ms)], manager="local", side=side, keys=keys)
        for side, keys, ms in [("penstock", "20000", 130), ("penstock", "100", 100), ("hdfs-2", "20000", 9)]
    ]
    (only,) = targets.large(measured, ["local"])
    assert (only.value, only.met) == (1.3, False)
    (unknown,) = targets.large(measured[:1], ["local"])
    assert unknown.value is None


def test_the_longest_batch_is_compared_with_others_of_the_same_task_count():
    few = [batch(ms, sinceChange=i) for i, ms in enumerate([14, 10, 10])]
    many = [batch(ms, sinceChange=i) for i, ms in enumerate([32, 20, 20])]
    measured = [series(few, manager="local", tasks="2"), series(many, manager="local", tasks="16")]
    two, sixteen = targets.rescale(measured, ["local"])
    assert (two.value, two.met) == (1.4, True)
    assert (sixteen.value, sixteen.met) == (1.6, False)
    assert measured[0].values(samples.changed_batch_ms) == [14]


def test_the_cost_of_checks_is_a_share_of_batch_time():
    measured = [
        series([batch(10, accesses=1000, checkedBytes=50_000)], manager="local", side="penstock"),
        series([{"ns": 90}], call="access"),
        series([{"ns": 0.2}], call="checksum"),
    ]
    (only,) = targets.check(measured, ["local"])
    assert (only.value, only.met) == (pytest.approx((1000 * 90 + 50_000 * 0.2) / 10e6), True)
    (unknown,) = targets.check(measured[:2], ["local"])
    assert unknown.value is None


def test_mode_observe_is_compared_with_mode_off():
    measured = [series([batch(ms)], manager="local", side=side) for side, ms in (("off", 100), ("observe", 103))]
    (only,) = targets.observe(measured, ["local"])
    assert (only.value, only.met) == (1.03, False)


def test_the_cost_of_the_barrier_is_a_share_of_batch_time():
    measured = [
        series([batch(ms)], manager="local", mapTasks=m, side=side)
        for m, side, ms in (
            ("2", "planning", 100),
            ("2", "barrier", 102),
            ("8", "planning", 100),
            ("8", "barrier", 113),
        )
    ]
    two, eight = targets.barrier_cost(measured, ["local"])
    assert (two.value, two.met) == (pytest.approx(0.02), True)
    assert (eight.value, eight.met) == (pytest.approx(0.13), False)


def test_targets_of_cases_that_were_not_chosen_are_left_out():
    found = [Target("one", 0.9, 0.95, at_least=True), Target("other", None, 0.95, at_least=True)]
    assert of_cases("zipf.*", found) == found[:1]
    assert of_cases(None, found) == found
