"""The planner sidecar: answers of its server, and its process."""

import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from penstock.planning.shard_policies import POLICIES
from penstock.sidecars.planner.demand import demand_of
from penstock.sidecars.planner.frame import (
    PREFIX_BYTES,
    BrokenFrameError,
    Frame,
    Kind,
    decode_prefix,
    decode_rest,
    encode,
)
from penstock.sidecars.planner.measured import Measured, Pinning, of_frame
from penstock.sidecars.planner.planner import IDLE_S, MAX_REGIONS, Planner
from penstock.sidecars.planner.server import serve
from penstock.sidecars.planner.warm_up import warm_up

TOKEN = "0123456789abcdef" * 4
RUN = "12345678-1234-1234-1234-123456789abc"


def table(**columns):
    made = pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, made.schema) as writer:
        writer.write_table(made)
    return sink.getvalue().to_pybytes()


def measured(*, shards=4, rows=None, busy_ns=None, body=None, task=None, ran_on=None, home=None, **head):
    values = {
        "run": RUN,
        "region": 0,
        "batch": 7,
        "shards": shards,
        "tasks": 2,
        "most": 4,
        "stage_ms": 110.0,
        "tasks_ms": [100.0, 80.0],
        "plans_tasks": True,
        "attributes": False,
    }
    values.update(head)
    columns = {"task": task or [s % 2 for s in range(shards)]} if "placing" in head else {}
    if head.get("attributes"):
        columns["ran_on"] = ran_on or [s % 2 for s in range(shards)]
    if "homing" in head:
        columns["home"] = home or [0] * shards
    if head.keys() & {"placing", "pinning", "homing"}:
        columns["state_bytes"] = [100] * shards
    sent = table(rows=rows or [10] * shards, busy_ns=busy_ns or [1000] * shards, **columns) if body is None else body
    return Frame(Kind.MEASURED, 5, {k: v for k, v in values.items() if v is not None}, sent)


PLACING = {"policy": "refine", "theta": 1.1, "tasks": 2}
PINNING = {
    "theta": 1.1,
    "most": 4,
    "tasks": 2,
    "base_shards": 4,
    "pin_slots": [],
    "hashes": [],
    "rows": [],
    "busy_ns": [],
}
HOMING = {"theta": 1.1, "changed": True, "bytes_per_ms": 1000.0, "move_ms": 0.1, "cores": [1, 1]}
HOMING |= {"executors": ["a", "b"], "tasks": [1, 1]}


class Client:
    """The driver's side of a connection."""

    def __init__(self, connection):
        self.connection = connection

    def send(self, data):
        self.connection.sendall(data)

    def ask(self, frame):
        self.send(encode(frame))
        return self.receive()

    def receive(self):
        prefix = decode_prefix(self.read(PREFIX_BYTES))
        return decode_rest(prefix, self.read(prefix.head_bytes + prefix.body_bytes))

    def is_closed(self):
        try:
            return self.connection.recv(1) == b""
        except ConnectionResetError:
            return True

    def read(self, count):
        data = b""
        while len(data) < count:
            part = self.connection.recv(count - len(data))
            assert part, "the connection ended"
            data += part
        return data


@pytest.fixture
def served():
    """Yield a client of a served connection, and a list that gets the error that ended it."""
    ours, theirs = socket.socketpair()
    ended = []

    def run():
        try:
            serve(theirs, TOKEN, Planner())
            ended.append(None)
        except (BrokenFrameError, OSError) as error:
            ended.append(error)
        finally:
            theirs.close()

    thread = threading.Thread(target=run)
    thread.start()
    ours.settimeout(20)
    yield Client(ours), ended
    ours.close()
    thread.join(20)
    assert ended


def hello(client, token=TOKEN):
    return client.ask(Frame(Kind.HELLO, 1, {"token": token, "penstock": "0"}))


def test_a_client_is_welcomed_and_gets_plans(served):
    client, _ = served
    welcome = hello(client)
    assert (welcome.kind, welcome.number) == (Kind.WELCOME, 1)
    answer = client.ask(measured())
    assert (answer.kind, answer.number) == (Kind.PLANNED, 5)
    assert (answer.head["run"], answer.head["region"], answer.head["batch"]) == (RUN, 0, 7)
    assert 1 <= answer.head["tasks"] <= 4
    assert answer.head["reason"]


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


DEMAND = {
    "run": RUN,
    "batch": 7,
    "executors": 2,
    "rows": 1000,
    "batch_ms": 4000.0,
    "interval_ms": 4000.0,
    "work_ms": 7800.0,
    "tasks": 2,
    "target_ms": 1000.0,
    "cores": 1,
    "least": 1,
    "most": 8,
}


def demand(**head):
    return Frame(Kind.DEMAND, 6, {k: v for k, v in (DEMAND | head).items() if v is not None})


def test_more_work_than_cores_asks_for_executors(served):
    client, _ = served
    hello(client)
    answer = client.ask(demand())
    assert (answer.kind, answer.number) == (Kind.SCALED, 6)
    assert (answer.head["run"], answer.head["batch"], answer.head["executors"]) == (RUN, 7, 3)
    assert "with 2 executors" in answer.head["reason"]
    # The answer starts from the executors that exist, not from those that were requested.
    assert client.ask(demand(executors=1, tasks=1)).head["executors"] > 1


def test_executors_are_removed_only_after_a_window():
    planner, wanted = Planner(), []
    for batch in range(12):
        wanted.append(
            planner.scale(demand_of(demand(work_ms=100.0, batch_ms=150.0, interval_ms=150.0, batch=batch))).executors
        )
    assert wanted[:9] == [2] * 9
    assert wanted[9] == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"interval_ms": 0}, "interval_ms and target_ms must be above 0"),
        ({"target_ms": 0}, "interval_ms and target_ms must be above 0"),
        ({"executors": 0}, "executors must be a whole number from 1"),
        ({"most": 0}, "most must be a whole number from 1"),
        ({"rows": -1}, "rows must be a whole number from 0"),
        ({"run": None}, "run must be a uuid"),
        ({"work_ms": "much"}, "work_ms must be a number"),
    ],
)
def test_an_invalid_demand_is_refused(served, change, reason):
    client, _ = served
    hello(client)
    answer = client.ask(demand(**change))
    assert answer.kind == Kind.REFUSED
    assert reason in answer.head["reason"]


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


def test_costs_of_rows_are_derived_from_the_times_of_tasks(served):
    client, _ = served
    hello(client)
    rows, ms = np.array([50, 50, 50, 50]), np.array([8.0, 1.0, 1.0, 1.0])
    answers = []
    for batch, ran_on in enumerate([[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]] * 3):
        tasks_ms = np.bincount(ran_on, rows * ms).tolist()
        answers.append(
            client.ask(
                measured(
                    batch=batch, rows=rows.tolist(), busy_ns=[10] * 4, tasks_ms=tasks_ms, attributes=True, ran_on=ran_on
                )
            )
        )
    assert [a.head["attributed"] for a in answers[:4]] == [False] * 4
    assert answers[-1].head["attributed"]
    with pa.ipc.open_stream(answers[-1].body) as stream:
        row_ns = stream.read_all().column("row_ns").to_numpy()
    # Up to 30 ms of each task are not counted as work, so the costs are not exact.
    assert row_ns[0] > 5 * row_ns[1:].max()


def test_forecasts_of_shards_survive_a_pin():
    planner = Planner()
    ones = np.ones(4, dtype=np.int64)

    def batch(number, load, pin_slots):
        none = np.zeros(0, dtype=np.int64)
        pinning = Pinning(1.1, 4, 2, 4, pin_slots, none.astype(np.int32), none, none, np.zeros(len(load)))
        tasks_ms = np.array([4.0, 6.0])
        return Measured(UUID(RUN), 0, number, 2, 2, 10.0, tasks_ms, load, load, True, None, pinning)

    for number in range(3):
        planner.plan(batch(number, ones, ()))
    region = next(iter(planner._regions.values()))
    before = region.forecaster
    planner.plan(batch(3, np.ones(5, dtype=np.int64), (8,)))
    assert next(iter(planner._regions.values())) is region
    assert region.forecaster is not before
    assert region.forecaster.items == 5
    assert region.forecaster.forecast().error.keys() >= before.forecast().error.keys() > set()
    planner.plan(batch(4, ones, ()))
    assert next(iter(planner._regions.values())) is region


def test_costs_of_rows_are_learnt_anew_for_a_pin_slot_with_another_hash():
    planner = Planner()
    none = np.zeros(0, dtype=np.int64)
    rows, ms = np.full(5, 50), np.array([8.0, 1.0, 1.0, 1.0, 8.0])

    def row_ns_of_batch(number, pin_slots):
        ran_on = np.array([[0, 0, 1, 1, 0], [0, 1, 0, 1, 0], [0, 1, 1, 0, 1]][number % 3], dtype=np.int32)
        pinning = Pinning(1.1, 4, 2, 4, pin_slots, none.astype(np.int32), none, none, np.zeros(5))
        tasks_ms = np.bincount(ran_on, rows * ms)
        busy_ns = np.full(5, 10, dtype=np.int64)
        return planner.plan(
            Measured(UUID(RUN), 0, number, 2, 2, 10.0, tasks_ms, rows, busy_ns, False, None, pinning, ran_on)
        ).row_ns

    assert row_ns_of_batch(0, (8,)) is None
    before = [row_ns_of_batch(number, (8,)) for number in range(1, 9)][-1]
    # The number of shards is the same, but one of them has other keys.
    ms[4] = 1.0
    after = row_ns_of_batch(9, (12,))
    assert after[:4] == pytest.approx(before[:4], rel=0.2)
    assert after[4] < before[4] / 2


def test_time_that_was_not_booked_is_shared_by_rows_if_little_was_booked():
    rows, busy_ns = np.array([10, 10, 20]), np.array([3_000_000, 0, 1_000_000])

    def batch(ran_on):
        hashes, key_rows, key_busy_ns = np.array([3], dtype=np.int32), np.array([1]), np.array([2_000_000])
        pinning = Pinning(1.1, 4, 2, 3, (), hashes, key_rows, key_busy_ns, np.zeros(3))
        tasks_ms = np.array([130.0, 50.0])
        return Measured(UUID(RUN), 0, 1, 2, 2, 10.0, tasks_ms, rows, busy_ns, False, None, pinning, ran_on), pinning

    # Of 120 ms of work 4 ms were booked; 116 ms are shared by rows.
    little, pinning = batch(np.zeros(3, dtype=np.int32))
    assert little.load_ms.tolist() == pytest.approx([3 + 29, 29, 1 + 58])
    assert little.load_of_keys_ms(pinning).tolist() == pytest.approx([2 + 2.9])
    enough, pinning = batch(None)
    assert enough.load_ms.tolist() == pytest.approx([90, 0, 30])
    assert enough.load_of_keys_ms(pinning).tolist() == pytest.approx([60])


@pytest.mark.parametrize("token", ["", "f" * 64, "é" * 64, None, 5])
def test_a_wrong_token_ends_the_connection(served, token):
    client, ended = served
    client.send(encode(Frame(Kind.HELLO, 1, {"token": token})))
    assert client.is_closed()
    assert "token" in str(ended[0])


def test_a_question_before_the_hello_ends_the_connection(served):
    client, _ = served
    client.send(encode(measured()))
    assert client.is_closed()


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (measured(run=None), "run must be a uuid, found None"),
        (measured(run="me"), "run must be a uuid, found 'me'"),
        (measured(run=3), "run must be a uuid, found 3"),
        (measured(region=-1), "region must be a whole number"),
        (measured(tasks=0), "tasks must be a whole number from 1"),
        (measured(tasks=True), "tasks must be"),
        (measured(most="many"), "most must be"),
        (measured(stage_ms=-1), "stage_ms must be a number from 0"),
        (measured(tasks_ms=[1, "x"]), "tasks_ms must be a number from 0 to 10^15, found 'x'"),
        (measured(plans_tasks=None), "plans_tasks must be true or false, found None"),
        (measured(plans_tasks=1), "plans_tasks must be true or false, found 1"),
        (measured(attributes=None), "attributes must be true or false, found None"),
        (measured(attributes=True, ran_on=[0, 1, 2, 0]), "column ran_on has 2, but only 2 tasks have reported"),
        (measured(attributes=True, body=table(rows=[1] * 4, busy_ns=[1] * 4)), "column ran_on is missing"),
        (measured(placing=[]), "placing must be an object, found []"),
        (
            measured(placing=PLACING | {"policy": "best"}),
            f"policy must be one of {', '.join(POLICIES)}, found",
        ),
        (measured(placing=PLACING | {"theta": 1}), "theta must be above 1 and at most 10, found 1.0"),
        (measured(placing=PLACING | {"theta": "1"}), "theta must be a number"),
        (measured(placing=PLACING | {"tasks": 0}), "tasks must be a whole number from 1"),
        (measured(placing=PLACING, task=[0, 1, 2, 0]), "column task has 2, but there are 2 tasks"),
        (measured(placing=PLACING, body=table(rows=[1] * 4, busy_ns=[1] * 4)), "column task is missing"),
        (measured(pinning=3), "pinning must be an object, found 3"),
        (measured(pinning=PINNING | {"theta": 1}), "theta must be above 1"),
        (measured(pinning=PINNING | {"tasks": 0}), "tasks must be a whole number from 1"),
        (measured(pinning=PINNING | {"most": 1025}), "most must be a whole number from 0 to 1024"),
        (measured(pinning=PINNING | {"base_shards": 3}), "3 base shards and 0 pin slots are not 4 shards"),
        (
            measured(pinning=PINNING | {"base_shards": 3, "pin_slots": [1.5]}),
            "pin_slots must be whole numbers of 32 bits, found 1.5",
        ),
        (measured(pinning=PINNING | {"hashes": [1 << 31]}), "hashes must be whole numbers of 32 bits"),
        (measured(pinning=PINNING | {"hashes": [1, 1]}), "hashes must be distinct"),
        (measured(pinning=PINNING | {"hashes": [1]}), "rows must have 1 numbers, one for each of hashes, found 0"),
        (measured(pinning=PINNING | {"hashes": [1] * 1025}), "hashes must have at most 1024 elements"),
        (measured(tasks_ms={}), "tasks_ms must be a list"),
        (measured(shards=5, body=table(rows=[1] * 4, busy_ns=[1] * 4)), "column rows must have 5 numbers"),
        (measured(rows=[1, -1, 1, 1]), "column rows has a negative number"),
        (measured(rows=[1, None, 1, 1]), "column rows must have 4 numbers"),
        (measured(body=table(rows=[1, 1, 1, 1])), "column busy_ns is missing"),
        (Frame(Kind.PLANNED, 5), "a driver does not send planned"),
    ],
)
def test_invalid_questions_are_refused_and_the_connection_stays_open(served, frame, reason):
    client, _ = served
    hello(client)
    refused = client.ask(frame)
    assert refused.kind == Kind.REFUSED
    assert reason in refused.head["reason"]
    assert client.ask(measured()).kind == Kind.PLANNED


def busy(batch, **more):
    return measured(batch=batch, busy_ns=[(batch + s) * 1_000_000 for s in range(4)], tasks_ms=[30.0, 90.0], **more)


@pytest.mark.parametrize("error", [ZeroDivisionError("no rows"), MemoryError(), RecursionError("too deep")])
def test_an_error_in_planning_a_region_does_not_affect_others(served, monkeypatch, error):
    def fails(*_):
        raise error

    monkeypatch.setattr("penstock.sidecars.planner.planner.place", fails)
    client, _ = served
    hello(client)
    alone = Planner()
    for batch in range(10):
        answer = client.ask(busy(batch))
        assert answer.head["reason"] == alone.plan(of_frame(busy(batch))).reason
        refused = client.ask(busy(batch, region=1, placing=PLACING))
        assert (refused.kind, refused.number) == (Kind.REFUSED, 5)
        assert refused.head["reason"] == f"{type(error).__name__}: {error}"
        assert "in fails" in refused.head["traceback"]
    # What was learnt before the error is discarded.
    assert client.ask(busy(10, region=1)).head["reason"] == Planner().plan(of_frame(busy(10))).reason


def test_errors_during_the_warm_up_are_ignored(monkeypatch):
    plan, answered = Planner.plan, []

    def planned(self, batch):
        answered.append(plan(self, batch))
        return answered[-1]

    monkeypatch.setattr(Planner, "plan", planned)
    warm_up()
    kinds = len(POLICIES) + 7
    assert len(answered) == kinds
    monkeypatch.setattr("penstock.sidecars.planner.planner.place", lambda *_: 1 // 0)
    warm_up()
    assert len(answered) == 2 * kinds - len(POLICIES)


def test_an_error_in_scaling_refuses_that_question_only(served, monkeypatch):
    monkeypatch.setattr("penstock.sidecars.planner.planner.follow_demand", lambda *_: 1 // 0)
    client, _ = served
    hello(client)
    refused = client.ask(demand())
    assert refused.kind == Kind.REFUSED
    assert "ZeroDivisionError" in refused.head["reason"]
    assert client.ask(measured()).kind == Kind.PLANNED


def test_an_answer_that_is_too_long_is_refused(served, monkeypatch):
    monkeypatch.setattr("penstock.sidecars.planner.planner._tasks", lambda *_: (1, "x" * (2 << 20)))
    client, _ = served
    hello(client)
    refused = client.ask(measured())
    assert refused.kind == Kind.REFUSED
    assert "too long" in refused.head["reason"]
    assert client.ask(measured(plans_tasks=False)).kind == Kind.PLANNED


@pytest.mark.parametrize("body", [b"no arrow", b"", table(rows=[1])[:40]])
def test_a_body_that_is_not_arrow_ends_the_connection(served, body):
    client, ended = served
    hello(client)
    client.send(encode(measured(body=body)))
    assert client.is_closed()
    assert "Arrow" in str(ended[0])


def test_garbage_ends_the_connection(served):
    client, ended = served
    hello(client)
    client.send(bytes(100))
    assert client.is_closed()
    assert isinstance(ended[0], BrokenFrameError)


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


def measured_batch(tasks_ms, rows, busy_ms):
    busy_ns = (np.array(busy_ms) * 1e6).astype(np.int64)
    return Measured(UUID(RUN), 0, 0, 2, 2, 500.0, np.array(tasks_ms), np.array(rows), busy_ns)


def test_the_fixed_time_of_a_task_is_not_work():
    quiet = measured_batch([25.0, 20.0], [5, 5, 0], [0.3, 0.15, 0])
    assert quiet.work_ms == pytest.approx([0.25, 0.2])
    assert quiet.load_ms == pytest.approx([0.3, 0.15, 0])


def test_work_that_was_not_booked_is_shared_like_booked_work_or_by_rows():
    assert measured_batch([130.0, 50.0], [5, 5, 0], [3, 1, 0]).load_ms == pytest.approx([90.0, 30.0, 0.0])
    assert measured_batch([130.0, 50.0], [5, 3, 0], [0, 0, 0]).load_ms == pytest.approx([75.0, 45.0, 0.0])
    assert measured_batch([], [0, 0], [0, 0]).load_ms.tolist() == [0.0, 0.0]


def test_the_number_of_remembered_regions_is_bounded():
    planner = Planner()
    for number in range(MAX_REGIONS + 10):
        planner.plan(Measured(UUID(int=number), 0, 0, 1, 1, 1.0, np.array([1.0]), np.ones(1, int), np.ones(1, int)))
    assert len(planner._regions) == MAX_REGIONS


@pytest.fixture
def folder():
    path = Path(tempfile.mkdtemp(prefix="penstock-"))
    yield path
    assert not path.exists(), "the sidecar left its folder behind"


def start(folder, token=TOKEN):
    process = subprocess.Popen(
        [sys.executable, "-m", "penstock.sidecars.planner", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdin.write(token + "\n")
    process.stdin.flush()
    return process


def connect(folder):
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(20)
    connection.connect(str(folder / "driver.sock"))
    return Client(connection)


def test_the_process_serves_one_connection_and_ends_with_it(folder):
    process = start(folder)
    assert process.stdout.readline() == "ready\n"
    mode = stat.S_IMODE((folder / "driver.sock").stat().st_mode)
    assert mode == 0o600
    client = connect(folder)
    assert hello(client).kind == Kind.WELCOME
    assert client.ask(measured()).kind == Kind.PLANNED
    client.connection.close()
    assert process.wait(20) == 0
    process.stdin.close()


def test_the_process_ends_when_its_standard_input_is_closed(folder):
    process = start(folder)
    assert process.stdout.readline() == "ready\n"
    client = connect(folder)
    hello(client)
    process.stdin.close()
    assert process.wait(20) == 0


def test_the_process_ends_when_its_driver_is_killed(folder):
    # A driver that starts a sidecar, prints its process ID, and waits.
    driver = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import subprocess, sys, time\n"
            "command = [sys.executable, '-m', 'penstock.sidecars.planner', sys.argv[1]]\n"
            "p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)\n"
            "p.stdin.write('a' * 64 + '\\n'); p.stdin.flush(); p.stdout.readline()\n"
            "print(p.pid, flush=True); time.sleep(60)",
            str(folder),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    sidecar = int(driver.stdout.readline())
    driver.send_signal(signal.SIGKILL)
    driver.wait(20)
    deadline = time.monotonic() + 20
    while Path(f"/proc/{sidecar}").exists() and time.monotonic() < deadline:
        if Path(f"/proc/{sidecar}/stat").read_text().split()[2] == "Z":
            break
        time.sleep(0.05)
    else:
        assert not Path(f"/proc/{sidecar}").exists(), f"{os.getpid()}: sidecar {sidecar} outlived its driver"
    deadline = time.monotonic() + 20
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.05)


@pytest.mark.parametrize("token", ["", "short"])
def test_the_process_refuses_an_invalid_token(folder, token):
    process = start(folder, token)
    assert process.wait(20) == 2
    assert "only the driver starts this process" in process.stderr.read()
    process.stdin.close()
    folder.rmdir()
