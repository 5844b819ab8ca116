"""Targets for single parts: stores, planners, moves of shards, executor channels and sidecars."""

import pytest
from measured_series import batch, series
from penstock.benchmarks import targets


def test_a_store_is_compared_with_the_faster_rocksdb_that_counts_its_rows():
    def measured(call, side, keys="1000000", **figures):
        return series([figures], call=call, side=side, keys=keys)

    get, put, size, commit = targets.store(
        [
            measured("get", "penstock", ns=100),
            measured("get", "rocksdb-1", ns=900),
            measured("get", "rocksdb-changelog-1", ns=500),
            measured("put", "penstock", ns=100),
            measured("put", "rocksdb-1", ns=490),
            measured("put", "rocksdb-without-count-1", ns=200),
            measured("memory", "penstock", bytes=49),
            measured("commit", "penstock", ns=14),
            measured("commit", "penstock", keys="10000", ns=10),
        ]
    )
    assert (get.value, get.met) == (5, True)
    assert (put.value, put.met) == (4.9, False)
    assert (size.value, size.met) == (49, False)
    assert (commit.value, commit.met) == (1.4, True)


def test_planners_have_their_own_targets():
    exact = series([{"planMs": 15.0}, {"planMs": 25.0}], call="mixed, theta 0.08", keys="10")
    merged = series(
        [{"planMs": 2.0, "error": 0.001}, {"planMs": 3.0, "error": 0.02}], call="compact, theta 0.08", keys="10"
    )
    by_name = {t.name: t for t in targets.plan([exact, merged])}
    assert by_name["Mixed over keys, theta 0.08: ms, at most"].met
    assert by_name["Mixed over records, theta 0.08: ms, at most"].met
    assert not by_name["Mixed over records, theta 0.08: largest error, at most"].met
    assert not by_name["Mixed over keys, theta 0.02: ms, at most"].met


def test_core_assignments_must_not_cost_more_than_published_ones():
    measured = series([{"planMs": 0.4, "cost": 0.9}, {"planMs": 0.4, "cost": 1.1}], call="8 nodes")
    time, cost, *_ = targets.cores([measured])
    assert time.met
    assert not cost.met


def test_the_slowest_plan_decides():
    few, many = targets.loop(
        [
            series([{"planMs": 2.0}, {"planMs": 9.0}, {"planMs": 3.0}], call="tasks, 256 shards"),
            series([{"planMs": 6.0}], call="mixed, 256 shards"),
            series([{"planMs": 19.0}], call="mixed, 4096 shards"),
        ]
    )
    assert (few.value, few.target, few.met) == (6.0, 5.0, False)
    assert (many.value, many.target, many.met) == (19.0, 20.0, True)


def test_moving_a_shard_is_compared_with_the_checkpoint():
    def moved(call, ms):
        return series([{"ns": ms * 1e6, "movedBytes": 32 << 20}], call=call)

    found = targets.move(
        [
            moved("32 MB inside an executor", 0.01),
            moved("32 KB by local", 3.0),
            moved("32 MB by local", 16.0),
            moved("32 MB through plain Spark's checkpoint, HDFS-backed, default file manager", 400.0),
            moved("32 MB through plain Spark's checkpoint, RocksDB, default file manager", 80.0),
            moved("32 MB through the checkpoint, default file manager", 20.0),
        ]
    )
    inside, small, small_mpi, large, large_mpi, *times = found
    assert (inside.met, small.met, small_mpi.value, large_mpi.value) == (True, False, None, None)
    assert large.value == pytest.approx(2.097, abs=0.001)
    assert [(target.value, target.met) for target in times] == [(25.0, True), (5.0, False), (1.25, False)]


def test_an_executor_channel_is_measured_in_each_direction():
    def measured(call, ns):
        return series([{"ns": ns}], call=call)

    out, back, wake = targets.ring([measured("64 MiB to Python", 5e6), measured("a byte and back", 50_000)])
    assert (out.value, out.met) == (pytest.approx(13.42, abs=0.01), True)
    assert (back.value, back.met) == (None, False)
    assert (wake.value, wake.met) == (25.0, False)


def test_sidecars_must_cost_little():
    idle = series([{"processorShare": 0.002}, {"processorShare": 0.02}], sidecars="idle")
    alone, killed = (
        series([batch(ms)], manager="local", sidecars=state) for state, ms in (("alone", 100), ("killed", 120))
    )
    share, ratio = targets.sidecar([alone, killed, idle], ["local"])
    assert (share.value, share.met) == (0.02, False)
    assert (ratio.value, ratio.met) == (pytest.approx(1.2), False)
