"""Changing the settings of a running query."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING

import penstock
import pytest
from harness import PENSTOCK, Engine, counting, write_events

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def refusal(*arguments: object) -> penstock.PenstockError:
    with pytest.raises(penstock.PenstockError) as caught:
        penstock.set(*arguments)  # type: ignore[arg-type]
    return caught.value


def test_a_changed_number_of_tasks_applies_to_the_next_batch(application: SparkSession, tmp_path: Path) -> None:
    engine = Engine(PENSTOCK.provider, PENSTOCK.partitions)
    wanted = [2, 7, 32, 3]
    first = counting(engine.session(application), tmp_path).option("penstock.tasks", str(wanted[0]))
    query = first.format("noop").start()
    try:
        for number, tasks in enumerate(wanted):
            if number:
                penstock.set(query, "tasks", tasks)
            write_events(tmp_path / "source", number, rows=60)
            query.processAllAvailable()
        batches = [p for p in query.recentProgress if json.loads(p.json)["numInputRows"]]
        assert [b.observedMetrics["penstock"].regions[0]["tasks"] for b in batches] == wanted
        penstock.set(query, "theta", 1.1)
        assert refusal(query, "theta", 1.0).error_class == "PENSTOCK_INVALID_SETTING"
        assert refusal(query, "tasks", "many").error_class == "PENSTOCK_INVALID_SETTING"
        assert refusal(query, "task", 2).error_class == "PENSTOCK_UNKNOWN_SETTING"
        policy = refusal(query, "penstock.policy", "static")
        assert policy.error_class == "PENSTOCK_NOT_AT_RUN_TIME"
        assert "penstock.policy=static" in policy.detail
    finally:
        query.stop()
    assert refusal(query, "tasks", 2).error_class == "PENSTOCK_NOT_RUNNING"
    assert "SimpleNamespace" in refusal(SimpleNamespace(), "tasks", 2).detail


def test_a_setting_can_be_changed_under_each_of_its_names(application: SparkSession, tmp_path: Path) -> None:
    no_empty_batches = {"spark.sql.streaming.noDataMicroBatches.enabled": "false"}
    session = Engine(PENSTOCK.provider, PENSTOCK.partitions, no_empty_batches).session(application)
    query = counting(session, tmp_path).option("spark.penstock.tasks", "2").format("noop").start()
    try:
        for number, name in enumerate(["spark.penstock.tasks", "penstock.tasks", "tasks"]):
            penstock.set(query, name, 3 + number)
            penstock.set(query, "report.keys", number % 2 == 0)
            write_events(tmp_path / "source", number, rows=60)
            query.processAllAvailable()
            (region,) = penstock.status(query)["regions"]
            assert region["tasks"] == 3 + number
            assert region["heavyKeys"][0]["key"].startswith("hash ") == (number % 2 == 1)
    finally:
        query.stop()
