"""Answers of the planner sidecar: tasks of shards, pinned keys, and the number of tasks."""

from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from driver_end import hello
from penstock.planning.shard_policies import POLICIES
from penstock.sidecars.planner.frame import Kind
from penstock.sidecars.planner.measured import Measured
from penstock.sidecars.planner.planner import Planner
from planner_messages import PINNING, PLACING, RUN, measured


@pytest.mark.parametrize("policy", POLICIES)
def test_shards_are_placed_by_the_measured_time(served, policy):
    client, _ = served
    hello(client)
    busy_ns = [40_000_000, 40_000_000, 10_000_000, 10_000_000]
    answer = client.ask(
        measured(placing=PLACING | {"policy": policy}, task=[0, 0, 1, 1], busy_ns=busy_ns, plans_tasks=False)
    )
    assert (answer.kind, answer.head["tasks"]) == (Kind.PLANNED, 2)
    with pa.ipc.open_stream(answer.body) as stream:
        placed = stream.read_all()
    assert placed.schema == pa.schema([pa.field("task", pa.int64(), nullable=False)])
    task = placed.column("task").to_pylist()
    assert task[0] != task[1]
    assert task[2] != task[3]


def test_shards_are_placed_on_the_planned_number_of_tasks(served):
    client, _ = served
    hello(client)
    answer = client.ask(measured(placing=PLACING | {"tasks": 4}, task=[3, 2, 1, 0], most=1))
    assert answer.head["tasks"] == 1
    with pa.ipc.open_stream(answer.body) as stream:
        assert stream.read_all().column("task").to_pylist() == [0, 0, 0, 0]


def test_a_hash_is_pinned_if_that_splits_a_heavy_shard(served):
    client, _ = served
    hello(client)
    keys = {"hashes": [4, -4, 1], "busy_ns": [60_000_000, 20_000_000, 1_000_000], "rows": [1, 1, 1]}
    busy_ns = [85_000_000, 5_000_000, 5_000_000, 5_000_000]
    answer = client.ask(measured(pinning=PINNING | keys, busy_ns=busy_ns, plans_tasks=False))
    assert (answer.kind, answer.head["pinned"]) == (Kind.PLANNED, [4])
    # Rows decide if no time was booked, as with Python operators.
    keys = {"hashes": [4, -4, 1], "busy_ns": [0, 0, 0], "rows": [60, 20, 1]}
    pinning = PINNING | keys
    answer = client.ask(measured(pinning=pinning, rows=[85, 5, 5, 5], busy_ns=[0] * 4, plans_tasks=False))
    assert answer.head["pinned"] == [4]
    # In mode observe, more tasks run than are proposed.
    observed = measured(tasks=4, pinning=pinning, rows=[85, 5, 5, 5], busy_ns=[0] * 4, plans_tasks=False)
    assert client.ask(observed).head["pinned"] == [4]
    assert "pinned" not in client.ask(measured()).head


def settled(shards, load_ms, most, batches=40):
    """Return the number of tasks after batches that take 20 ms, 3 ms per task, and the load of the busiest task."""
    planner, tasks = Planner(), most
    load = np.full(shards, load_ms * 1e6).astype(np.int64)
    for batch in range(batches):
        busiest_ms = load_ms * shards / tasks
        stage_ms = 20 + 3 * tasks + busiest_ms
        measured_batch = Measured(UUID(RUN), 0, batch, tasks, most, stage_ms, np.full(tasks, busiest_ms), load, load)
        tasks = planner.plan(measured_batch).tasks
    return tasks


def test_quiet_queries_get_few_tasks_and_busy_queries_get_all_cores():
    assert settled(shards=64, load_ms=0.01, most=16) == 1
    assert settled(shards=64, load_ms=100.0, most=16) == 16
    # sqrt(load / cost of a task) = sqrt(256 / 3) = 9.2. The cost of a task is learnt from changes of their number.
    assert 7 <= settled(shards=64, load_ms=4.0, most=64) <= 13
