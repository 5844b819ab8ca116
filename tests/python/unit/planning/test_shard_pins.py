"""Pinned hashes over several batches."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from penstock.planning.executors import Worth
from penstock.planning.shard_pins import WINDOW, PinPlanner, ShardLoads

FREE = Worth(move_ms=0.0)


def reasoned(
    planner, load, heavy, *, pin_slots=(), base_shards=4, tasks=4, most=8, worth=FREE, state_bytes=0.0, theta=1.1
):
    """Plan pins for the loads of shards in ms, and for the costs of heavy keys by their hash."""
    shards = base_shards + len(pin_slots)
    batch = ShardLoads(base_shards, tuple(pin_slots), np.array(load, dtype=float), np.full(shards, state_bytes))
    hashes, cost = np.array(list(heavy), dtype=np.int32), np.array(list(heavy.values()), dtype=float)
    return planner.plan(batch, hashes, cost, tasks, theta=theta, most=most, worth=worth)


def plan(planner, load, heavy, **rest):
    return reasoned(planner, load, heavy, **rest).hashes


def test_two_heavy_keys_of_one_shard_are_separated():
    assert plan(PinPlanner(), [180, 70, 75, 75], {4: 90.0, -4: 60.0}) == [4]


def test_a_hash_stays_pinned_while_it_is_needed():
    # As above, with hash 4 in the first pin slot.
    assert plan(PinPlanner(), [90, 70, 75, 75, 90], {4: 90.0, -4: 60.0}, pin_slots=[4]) == [4]


def test_a_negative_hash_can_be_pinned():
    assert plan(PinPlanner(), [70, 75, 75, 180], {-1: 90.0, 3: 60.0}) == [-1]


def test_a_hash_is_unpinned_after_a_window_without_need():
    planner = PinPlanner()
    quiet = {"load": [25, 120, 115, 75, 20], "heavy": {4: 20.0}, "pin_slots": [4]}
    for _ in range(WINDOW - 1):
        assert plan(planner, **quiet) == [4]
    assert plan(planner, **quiet) == []


def test_a_batch_that_needs_a_pin_restarts_the_window():
    planner = PinPlanner()
    quiet = {"load": [25, 120, 115, 75, 20], "heavy": {4: 20.0}, "pin_slots": [4]}
    for _ in range(WINDOW - 1):
        plan(planner, **quiet)
    assert plan(planner, [90, 70, 75, 75, 90], {4: 90.0}, pin_slots=[4]) == [4]
    assert plan(planner, **quiet) == [4]


def test_empty_batches_do_not_unpin():
    planner = PinPlanner()
    for _ in range(2 * WINDOW):
        assert plan(planner, [0] * 6, {}, pin_slots=[4, 8]) == [4, 8]


def test_a_needed_hash_replaces_one_that_is_not_needed():
    assert plan(PinPlanner(), [180, 120, 50, 30, 20], {4: 90.0, 8: 60.0}, pin_slots=[2], most=1) == [4]


def test_a_pin_slot_goes_to_another_key_only_if_no_shard_gets_heavier():
    # Hash 1 would make shard 1 heavier than shard 0 is.
    load, heavy = [3, 3, 1], {1: 1.0, 2: 2.0}
    assert plan(PinPlanner(), load, heavy, pin_slots=[1], base_shards=2, tasks=3, most=1) == [1]
    assert plan(PinPlanner(), [4, 1, 1], heavy, pin_slots=[1], base_shards=2, tasks=3, most=1) == [2]


def test_a_key_is_not_pinned_if_copying_its_shard_costs_too_much():
    load, heavy = [180, 70, 75, 75], {4: 90.0, -4: 60.0}
    worth = Worth(bytes_per_ms=1000.0, move_ms=0.0, horizon=10)
    assert plan(PinPlanner(), load, heavy, worth=worth, state_bytes=800_000.0) == [4]
    assert plan(PinPlanner(), load, heavy, worth=worth, state_bytes=1_000_000.0) == []


def test_a_plan_says_why_no_more_keys_are_pinned():
    load, heavy = [180, 70, 75, 75], {4: 90.0, -4: 60.0}
    assert reasoned(PinPlanner(), load, heavy).reason == ""
    expensive = Worth(bytes_per_ms=1000.0, move_ms=0.0, horizon=10)
    assert reasoned(PinPlanner(), load, heavy, worth=expensive, state_bytes=1_000_000.0).reason.startswith(
        "cost exceeds gain: pinning a key takes longer than it saves in 10 batches"
    )
    quiet = {"load": [25, 120, 115, 75, 20], "heavy": {4: 20.0}, "pin_slots": [4]}
    assert reasoned(PinPlanner(), **quiet).reason.startswith("within hysteresis: 1 pinned keys")
    assert reasoned(PinPlanner(), load, heavy, most=0).reason == (
        "1 more keys would be pinned, but penstock.pinned.max=0 is the limit"
    )


@given(st.data())
def test_no_shard_gets_heavier_and_the_limit_is_kept(data):
    base_shards, tasks, most = (data.draw(st.integers(1, n)) for n in (6, 6, 4))
    hashes = data.draw(st.lists(st.integers(-50, 50), unique=True, max_size=8))
    cost = {h: float(data.draw(st.integers(1, 100))) for h in hashes}
    pinned = data.draw(st.lists(st.sampled_from(hashes), unique=True, max_size=4)) if hashes else []
    load = np.array(data.draw(st.lists(st.integers(0, 50), min_size=base_shards, max_size=base_shards)), dtype=float)
    for h in hashes:
        load[h % base_shards] += 0 if h in pinned else cost[h]
    loads = [*load, *(cost[h] for h in pinned)]
    found = plan(PinPlanner(), loads, cost, pin_slots=pinned, base_shards=base_shards, tasks=tasks, most=most)
    if sum(loads):
        assert len(found) <= most
    assert set(found) <= set(hashes)
    before = max(loads)
    after = np.array(load)
    for h in hashes:
        after[h % base_shards] += cost[h] * ((h in pinned) - (h in found))
    if len(pinned) <= most:
        assert max([*after, *(cost[h] for h in found)]) <= max(before, 1.1 * sum(loads) / tasks) + 1e-9
