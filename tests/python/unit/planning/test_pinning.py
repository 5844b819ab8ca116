"""Choice of the keys that get a shard of their own."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from penstock.planning.pinning import pin


def pins(shard_load, keys, pinned=(), tasks=4, **options):
    """Call `pin` for keys given as pairs of shard and cost."""
    shard, cost = (np.array(column) for column in zip(*keys, strict=True)) if keys else (np.zeros(0, int), np.zeros(0))
    now = np.isin(np.arange(len(keys)), pinned)
    return pin(np.array(shard_load, dtype=float), shard.astype(np.int32), cost.astype(float), now, tasks, **options)


def test_the_most_expensive_key_of_a_heavy_shard_is_pinned():
    # The mean load of a task is 100, and shard 0 has 180.
    found = pins([180, 70, 75, 75], [(0, 90), (0, 60), (1, 50)])
    assert found.pinned.tolist() == [True, False, False]
    assert (found.left_out, found.limiting) == (0, None)


def test_nothing_is_pinned_if_shards_are_light():
    assert not pins([100, 100, 100, 100], [(0, 90), (1, 95)]).pinned.any()


def test_a_key_that_makes_up_its_whole_shard_is_not_pinned():
    found = pins([300, 30, 40, 30], [(0, 299)])
    assert not found.pinned.any()
    assert found.limiting == 0


def test_a_key_is_unpinned_if_its_shard_would_be_well_within_the_limit():
    assert pins([60, 120, 110, 110], [(0, 40)], pinned=[0]).pinned.tolist() == [True]
    assert pins([50, 120, 115, 115], [(0, 40)], pinned=[0]).pinned.tolist() == [False]


def test_the_cheapest_keys_are_left_out_first():
    found = pins([400, 0, 0, 0], [(0, 80), (0, 90), (0, 70)], most=2)
    assert found.pinned.tolist() == [True, True, False]
    assert found.left_out == 1


def test_nothing_is_pinned_without_heavy_keys():
    assert pins([1, 2, 3], []).pinned.tolist() == []


@given(st.data())
def test_pinning_makes_no_shard_heavier_and_is_stable(data):
    shards, tasks = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
    keys = data.draw(st.lists(st.tuples(st.integers(0, shards - 1), st.integers(1, 100)), max_size=12))
    light = data.draw(st.lists(st.integers(0, 50), min_size=shards, max_size=shards))
    load = np.array(light, dtype=float)
    for shard, cost in keys:
        load[shard] += cost
    most = data.draw(st.integers(0, 12))
    first = pins(load, keys, tasks=tasks, most=most)
    assert first.pinned.sum() <= most
    own = [cost for (_, cost), taken in zip(keys, first.pinned, strict=True) if taken]
    rest = load.copy()
    for (shard, cost), taken in zip(keys, first.pinned, strict=True):
        rest[shard] -= cost * taken
    assert max([*rest, *own]) <= max(load.max(), 1.1 * load.sum() / tasks)
    again = pins(load, keys, pinned=np.flatnonzero(first.pinned), tasks=tasks, most=most)
    assert again.pinned.tolist() == first.pinned.tolist()


def test_a_key_is_pinned_only_if_a_batch_gains_more_than_the_price():
    load, keys = [180, 70, 75, 75], [(0, 90), (0, 60)]
    assert pins(load, keys, price=np.full(4, 89.0)).pinned.tolist() == [True, False]
    assert not pins(load, keys, price=np.array([90.0, 0, 0, 0])).pinned.any()
