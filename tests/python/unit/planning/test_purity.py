"""Planners are pure functions: equal arguments give equal plans, and arguments are not changed."""

import copy
from dataclasses import fields, is_dataclass
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from penstock.planning.allocation import allocate
from penstock.planning.compact import merge, mixed_compact
from penstock.planning.cores import Demand, assign, assign_as_published, assign_naively
from penstock.planning.key_routing import KeyStatistics
from penstock.planning.longest_first import longest_first
from penstock.planning.mixed import min_migration, min_table, mixed, mixed_brute_force
from penstock.planning.partial_key_grouping import partial_key_grouping
from penstock.planning.pinning import pin
from penstock.planning.readj import readj_tuned
from penstock.planning.refinement import refine
from penstock.planning.shard_pins import PinPlanner, ShardLoads
from penstock.planning.shard_policies import POLICIES, ShardStatistics, place
from penstock.planning.task_count import TaskCount, TaskOverhead, follow


def same(one, other):
    if is_dataclass(one):
        return type(one) is type(other) and all(same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def keys(random):
    n = random.integers(1, 60)
    default, current = (random.integers(0, 4, n).astype(np.int32) for _ in range(2))
    return KeyStatistics(random.integers(1, 50, n) * 1.0, random.integers(1, 9, n) * 1.0, default, current, 4)


def demand(random):
    cores = random.integers(0, 4, (3, 4))
    cores[0] += 1
    capacity = np.full(3, 16)
    wanted = Demand(random.integers(1, 6, 4), random.uniform(1, 9, 4), random.uniform(0, 1e6, 4), np.arange(4) % 3)
    return cores, capacity, wanted


def pins(random):
    load = random.uniform(0, 100, 8)
    return load, random.integers(0, 8, 5).astype(np.int32), load[:5] / 2, random.random(5) < 0.3, 4


def shards(random):
    task = random.integers(0, 5, 40).astype(np.int32)
    return ShardStatistics(task, random.integers(0, 50, 40) * 1.0, random.integers(0, 1 << 20, 40) * 1.0), 4, 1.1


def compact(statistics):
    records, _ = merge(statistics, 3, 1.0, 1.0)
    return mixed_compact(records, 0.1, 10)


PLANNERS = {
    "allocate": (lambda r: (r.uniform(1, 9, 4), r.uniform(2, 5, 4), 9.0, 0.8, 30), allocate),
    "assign": (demand, assign),
    "assign_as_published": (demand, assign_as_published),
    "assign_naively": (demand, assign_naively),
    "compact": (lambda r: (keys(r),), compact),
    "longest_first": (lambda r: (r.uniform(0, 9, 40), 5), longest_first),
    "min_table": (lambda r: (keys(r), 0.1), min_table),
    "min_migration": (lambda r: (keys(r), 0.1), min_migration),
    "mixed": (lambda r: (keys(r), 0.1, 10), mixed),
    "mixed_brute_force": (lambda r: (keys(r), 0.1, 10), mixed_brute_force),
    "partial_key_grouping": (
        lambda r: (*(r.integers(0, 5, 30).astype(np.int32) for _ in range(2)), r.uniform(0, 9, 30), 5),
        partial_key_grouping,
    ),
    "pin": (pins, pin),
    "pin_planner": (
        lambda r: (ShardLoads(4, (), r.uniform(0, 90, 4), r.uniform(0, 1e6, 4)), np.array([4, -4, 1], dtype=np.int32)),
        lambda batch, hashes: PinPlanner().plan(batch, hashes, batch.load[:3] / 2, 4, theta=1.1, most=2),
    ),
    "readj_tuned": (lambda r: (keys(r), 0.1), readj_tuned),
    "refine": (lambda r: (r.integers(0, 6, 64).astype(np.int32), r.uniform(0, 9, 64), 6), refine),
    "follow": (lambda r: (TaskCount(4, (3, 3)), TaskOverhead(), r.uniform(0, 60, 16), 8), follow),
    **{f"place, {name}": (shards, partial(place, name)) for name in POLICIES},
}


@pytest.mark.parametrize("name", sorted(PLANNERS))
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_planners_are_pure_functions(name, seed):
    make, planner = PLANNERS[name]
    arguments = make(np.random.default_rng(seed))
    before = copy.deepcopy(arguments)
    first = planner(*arguments)
    assert same(arguments, before)
    assert same(planner(*arguments), first)
