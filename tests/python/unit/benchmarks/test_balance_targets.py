"""Targets for skewed and changing load: balance, latency and moved shards."""

import pytest
from measured_series import batch, changes, series
from penstock.benchmarks import targets


def barrier_series(hot, sticky_rows, share):
    plain = [batch(9, stage=100), batch(9, stage=100)]
    sticky = [batch(9, stage=70, rows=r, moved=share) for r in sticky_rows]
    return [
        series(plain, manager="local", hot=hot, side="plain"),
        series(sticky, manager="local", hot=hot, side="sticky"),
    ]


def test_the_barrier_must_balance_every_batch():
    even, uneven = [100, 104], [100, 112]
    measured = barrier_series("fixed", [even, even], 0.0) + barrier_series("moving", [even, uneven, even], 0.04)
    met = {t.name: (t.value, t.met) for t in targets.barrier(measured, ["local"])}
    assert met == {
        "hot keys fixed: busiest task over mean, worst batch, at most": (pytest.approx(104 / 102), True),
        "hot keys fixed: stage time over plain Spark's, at most": (pytest.approx(0.7), True),
        "hot keys moving: busiest task over mean, worst batch, at most": (pytest.approx(112 / 106), False),
        "hot keys moving: share of shards that change task, mean, at most": (pytest.approx(0.04), True),
        "hot keys moving: stage time over plain Spark's, at most": (pytest.approx(0.7), True),
    }


def test_latency_is_compared_for_the_slowest_rows():
    measured = [
        series([{"latencyMs": ms}] * 98 + [{"latencyMs": slowest}] * 2, manager="local", side=side, **case)
        for side, ms, slowest in (("plain", 100, 4000), ("hybrid", 90, 390))
        for case in ({"zipf": "0.5", "spread": "1", "omega": "8"},)
    ]
    skewed, more = targets.latency(measured, ["local"])
    assert (skewed.value, skewed.met) == (pytest.approx(4000 / 390), True)
    assert more.value is None


def test_a_hot_key_must_be_balanced_after_every_change():
    alone = [b for c in range(40) for b in changes(1, 1, change=c)]
    crowded = [b for c in range(39) for b in changes(1.2, 1.2, 1, change=c)] + changes(1, 1.5, 1.3, 1, change=39)
    measured = [series(b, manager="local", hot=h, side="penstock") for h, b in (("alone", alone), ("crowded", crowded))]
    met = {t.name: (t.value, t.met) for t in targets.hotkey(measured, ["local"])}
    assert met == {
        "hot key in a shard with room: batches until balanced, worst change, at most": (0, True),
        "hot key in a shard with room: changes, at least": (40, True),
        "hot key that must be pinned: batches until balanced, worst change, at most": (3, False),
        "hot key that must be pinned: changes, at least": (40, True),
    }
    assert not any(t.met for t in targets.hotkey([], ["local"]))


def test_the_gain_from_more_cores_is_measured_for_both_sides():
    times = [("penstock", "4", 1000), ("penstock", "16", 280), ("plain", "4", 1000), ("plain", "16", 800)]
    measured = [series([batch(ms)], manager="local", side=side, cores=cores) for side, cores, ms in times]
    ours, plain = targets.grow(measured, ["local"])
    assert (ours.value, ours.met) == (pytest.approx(1000 / 280), True)
    assert (plain.value, plain.met) == (1.25, False)


def test_a_uniform_load_has_targets_for_time_and_moved_shards():
    off = series([batch(100)], manager="local", side="off")
    on = series([batch(102, moved=0.0), batch(102, moved=0.1)], manager="local", side="on")
    time, moved = targets.uniform([off, on], ["local"])
    assert (time.value, time.met) == (1.02, True)
    assert (moved.value, moved.met) == (0.1, False)


def test_a_busy_machine_has_targets_for_time_and_moved_shards():
    off = series([batch(100)], manager="local", side="off")
    on = series([batch(103, moved=0.0), batch(103, moved=0.01)], manager="local", side="on")
    time, moved = targets.busy([off, on], ["local"])
    assert (time.value, time.met) == (1.03, True)
    assert (moved.value, moved.met) == (0.01, False)


def test_a_new_executor_must_have_its_share_by_the_second_batch():
    joined = series([batch(9) | {"newcomer": share} for share in (0.0, 0.19, 0.2)], manager="local", side="penstock")
    (found,) = targets.join_executor([joined], ["local"])
    assert (found.value, found.met) == (pytest.approx(0.95), True)
    (missing,) = targets.join_executor([], ["local"])
    assert (missing.value, missing.met) == (None, False)
