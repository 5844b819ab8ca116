"""Answers of the planner sidecar: the number of executors that the load demands."""

import pytest
from driver_end import hello
from penstock.sidecars.planner.demand import demand_of
from penstock.sidecars.planner.frame import Kind
from penstock.sidecars.planner.planner import Planner
from planner_messages import RUN, demand


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
