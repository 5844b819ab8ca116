"""The planner sidecar's server: who may ask, which questions are refused, and what an error affects."""

import pytest
from driver_end import hello
from penstock.planning.shard_policies import POLICIES
from penstock.sidecars.planner.frame import BrokenFrameError, Frame, Kind, encode
from penstock.sidecars.planner.measured import of_frame
from penstock.sidecars.planner.planner import Planner
from penstock.sidecars.planner.warm_up import warm_up
from planner_messages import PINNING, PLACING, RUN, demand, measured, table


def test_a_client_is_welcomed_and_gets_plans(served):
    client, _ = served
    welcome = hello(client)
    assert (welcome.kind, welcome.number) == (Kind.WELCOME, 1)
    answer = client.ask(measured())
    assert (answer.kind, answer.number) == (Kind.PLANNED, 5)
    assert (answer.head["run"], answer.head["region"], answer.head["batch"]) == (RUN, 0, 7)
    assert 1 <= answer.head["tasks"] <= 4
    assert answer.head["reason"]


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
