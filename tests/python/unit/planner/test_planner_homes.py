"""Answers of the planner sidecar: home executors of shards, and executors of tasks."""

import pyarrow as pa
import pytest
from driver_end import hello
from penstock.sidecars.planner.frame import Kind
from penstock.sidecars.planner.measured import of_frame
from penstock.sidecars.planner.planner import IDLE_S, Planner
from planner_messages import HOMING, measured


def homes(answer):
    with pa.ipc.open_stream(answer.body) as stream:
        return stream.read_all().column("home").to_pylist()


def test_shards_move_to_a_new_executor(served):
    client, _ = served
    hello(client)
    answer = client.ask(measured(homing=HOMING, busy_ns=[10_000_000] * 4, plans_tasks=False))
    assert (answer.kind, answer.head["tasks"]) == (Kind.PLANNED, 2)
    assert sorted(homes(answer)) == [0, 0, 1, 1]
    assert "gained over 20 batches" in answer.head["homes_reason"]


def test_shards_without_a_home_executor_are_placed_at_once(served):
    client, _ = served
    hello(client)
    answer = client.ask(measured(homing=HOMING | {"changed": False}, home=[0, 2, 1, 2], plans_tasks=False))
    assert homes(answer)[::2] == [0, 1]
    assert sorted(homes(answer)) == [0, 0, 1, 1]
    assert answer.head["homes_reason"] == "balanced"


def test_few_tasks_stay_on_the_executors_that_have_the_state(served):
    client, _ = served
    hello(client)
    three = HOMING | {"cores": [1, 1, 1], "executors": ["a", "b", "c"], "tasks": [0, 0, 0]}
    answer = client.ask(measured(homing=three, home=[1, 1, 2, 1], tasks=1, tasks_ms=[10.0], plans_tasks=False))
    assert answer.head["executor_tasks"] == [0, 1, 0]
    assert homes(answer) == [1, 1, 1, 1]
    assert answer.head["homes_reason"] == "balanced; 1 tasks on 1 of 3 executors"


def on_one_executor(planner, region, executors=("a", "b")):
    head = HOMING | {"executors": list(executors), "tasks": [1, 0], "changed": False}
    frame = measured(homing=head, region=region, tasks=1, tasks_ms=[10.0], plans_tasks=False)
    return planner.plan(of_frame(frame)).executor_tasks.tolist()


def test_regions_get_separate_cores():
    now_s = 0.0
    planner = Planner(lambda: now_s)
    assert on_one_executor(planner, 0) == [1, 0]
    # Of two regions with equal state, always the same one gives way, whichever region is planned.
    assert [on_one_executor(planner, region) for region in (1, 0, 1)] == [[1, 0], [0, 1], [1, 0]]
    # Regions on other executors do not matter.
    assert on_one_executor(planner, 2, executors=("a", "c")) == [1, 0]
    # A region that was not measured for long has no claim.
    now_s = IDLE_S + 1
    assert on_one_executor(planner, 0) == [1, 0]


def test_moves_between_known_executors_wait_for_the_window():
    planner, reasons = Planner(), []
    for batch in range(4):
        frame = measured(homing=HOMING | {"changed": False}, busy_ns=[10_000_000] * 4, plans_tasks=False, batch=batch)
        reasons.append(planner.plan(of_frame(frame)).homes.reason)
    assert reasons[:2] == ["within stabilisation window"] * 2
    assert "gained" in reasons[2]


@pytest.mark.parametrize(
    ("change", "home", "reason"),
    [
        ({"cores": []}, None, "cores must be at least 1"),
        ({"executors": ["a"]}, None, "there are 2 executors: each must have a distinct name"),
        ({"executors": ["a", "a"]}, None, "there are 2 executors: each must have a distinct name"),
        ({"executors": ["a", 7]}, None, "executors must be names"),
        ({"tasks": [1]}, None, "there are 2 executors"),
        ({"tasks": [1, -1]}, None, "tasks must be a number"),
        ({"tasks": [1, 1 << 17]}, None, "in tasks of at most 65536"),
        ({"cores": [1, 0]}, None, "cores must be at least 1"),
        ({"bytes_per_ms": 0}, None, "bytes_per_ms above 0"),
        ({"theta": 1.0}, None, "theta must be above 1"),
        ({"changed": 1}, None, "changed must be true or false"),
        ({}, [0, 1, 3, 0], "column home has 3, but there are 2 executors"),
    ],
)
def test_invalid_executors_are_refused(served, change, home, reason):
    client, _ = served
    hello(client)
    answer = client.ask(measured(homing=HOMING | change, home=home))
    assert answer.kind == Kind.REFUSED
    assert reason in answer.head["reason"]
