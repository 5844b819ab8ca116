"""Status and decisions of a query, read in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

import penstock
import pytest
from eventually import eventually
from harness import PENSTOCK, STOCK, Engine, counting, events, write_events
from penstock.monitor import document as monitor

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


NO_EMPTY_BATCHES = {"spark.sql.streaming.noDataMicroBatches.enabled": "false"}


def start(engine: Engine, application: SparkSession, folder: Path) -> StreamingQuery:
    return counting(engine.session(application), folder).format("noop").start()


def watched(application: SparkSession, query: StreamingQuery, batches: int) -> monitor.Query:
    """Return what `penstock top` reads about a query, once the events of so many batches have reached the driver."""
    url = application.sparkContext.uiWebUrl
    assert url is not None

    def read() -> monitor.Query:
        (found,) = monitor.read(monitor.fetch(url, 100, query.runId)).queries
        return found

    def complete() -> monitor.Query | None:
        found = read()
        return found if len(found.batches) == batches else None

    return eventually(complete, timeout_s=60, what=lambda: f"the driver shows {batches} batches: {read()}")


def test_status_and_decisions_show_the_batches_of_a_query(application: SparkSession, tmp_path: Path) -> None:
    query = start(Engine(PENSTOCK.provider, PENSTOCK.partitions, NO_EMPTY_BATCHES), application, tmp_path)
    try:
        nothing = penstock.status(query)
        assert (nothing["batch"], nothing["exception"]) == (None, None)
        assert nothing["reason"].startswith("no batch has ended yet: ")
        with pytest.warns(UserWarning, match="No decisions: no batch has ended yet"):
            empty = penstock.decisions(query)
        assert empty.empty
        assert empty.columns.tolist() == ["batch", "timestamp", "batchMs", "mode", "routingVersion"]
        assert empty.attrs["reason"].startswith("no batch has ended yet: ")
        for number in range(3):
            write_events(tmp_path / "source", number, rows=60)
            query.processAllAvailable()
        status = penstock.status(query)
        assert status["exception"] is None
        assert (status["batch"], status["mode"], status["shards"]) == (2, "on", PENSTOCK.partitions)
        (region,) = status["regions"]
        assert region["rows"] > 0
        table = penstock.decisions(query)
        assert table["batch"].tolist() == [0, 1, 2]
        assert (table["tasks"] == 2).all()
        assert (table["batchMs"] > 0).all()
        assert table["decision"].str.len().min() > 0
        assert table.iloc[-1]["heaviestKey"] == region["heavyKeys"][0]["key"]
        assert table.iloc[-1]["decision"] == region["decision"]
        assert 0 < table.iloc[-1]["heaviestKeyShare"] <= 1
        read = watched(application, query, batches=3)
        assert [batch.batch for batch in read.batches] == [0, 1, 2]
        assert read.batches[-1].regions[0].decision == region["decision"]
        (shards,) = read.shards
        assert (shards.batch, shards.tasks, len(shards.task_of)) == (2, 2, PENSTOCK.partitions)
        assert sum(shards.rows) == region["rows"]
    finally:
        query.stop()


def test_a_query_that_penstock_leaves_alone_reports_the_reason(application: SparkSession, tmp_path: Path) -> None:
    query = start(Engine(STOCK.provider, STOCK.partitions), application, tmp_path)
    try:
        write_events(tmp_path / "source", 0, rows=60)
        query.processAllAvailable()
        status = penstock.status(query)
        assert status["mode"] == "off"
        assert STOCK.provider in status["reason"]
        with pytest.warns(UserWarning, match="Penstock leaves the query alone: checkpoint written by"):
            assert penstock.decisions(query).empty
    finally:
        query.stop()


def test_a_failed_query_reports_its_exception(application: SparkSession, tmp_path: Path) -> None:
    session = PENSTOCK.session(application)
    wrong = counting(session, tmp_path).option("penstock.theta", "0.5").format("noop").start()
    assert not wrong.isActive
    status = penstock.status(wrong)
    assert status["batch"] is None
    assert "PENSTOCK_INVALID_SETTING" in status["exception"]
    assert status["reason"] == f"the query failed before its first batch had ended: {status['exception']}"
    with pytest.warns(UserWarning, match="PENSTOCK_INVALID_SETTING"):
        assert penstock.decisions(wrong).empty


def test_stopped_queries_and_queries_without_state_report_the_reason(application: SparkSession, tmp_path: Path) -> None:
    session = PENSTOCK.session(application)
    source = tmp_path / "source"
    source.mkdir()
    rows = events(session, source).writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = rows.start()
    query.stop()
    assert penstock.status(query)["reason"] == "the query was stopped before its first batch had ended"
    query = rows.start()
    try:
        write_events(source, 0, rows=60)
        query.processAllAvailable()
        status = penstock.status(query)
        assert status["batch"] == 0
        assert status["reason"] == "the query has no state, so there is nothing for Penstock to do"
    finally:
        query.stop()


@pytest.mark.parametrize("name", ["status", "decisions"])
def test_functions_are_exported(name: str) -> None:
    assert name in penstock.__all__
