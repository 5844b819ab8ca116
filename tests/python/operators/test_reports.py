"""What a query tells of itself in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

import penstock
import pytest
from harness import PENSTOCK, STOCK, Engine, events, write_events

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


NO_EMPTY_BATCHES = {"spark.sql.streaming.noDataMicroBatches.enabled": "false"}


def start(engine: Engine, application: SparkSession, folder: Path) -> StreamingQuery:
    source = folder / "source"
    source.mkdir()
    return (
        events(engine.session(application), source)
        .groupBy("k")
        .count()
        .writeStream.outputMode("update")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .format("noop")
        .start()
    )


def test_status_and_decisions_of_a_query(application: SparkSession, tmp_path: Path) -> None:
    query = start(Engine(PENSTOCK.provider, PENSTOCK.partitions, NO_EMPTY_BATCHES), application, tmp_path)
    try:
        assert penstock.status(query) is None
        assert penstock.decisions(query).empty
        for number in range(3):
            write_events(tmp_path / "source", number, rows=60)
            query.processAllAvailable()
        status = penstock.status(query)
        assert status is not None
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
    finally:
        query.stop()


def test_a_query_that_is_left_alone_says_why(application: SparkSession, tmp_path: Path) -> None:
    query = start(Engine(STOCK.provider, STOCK.partitions), application, tmp_path)
    try:
        write_events(tmp_path / "source", 0, rows=60)
        query.processAllAvailable()
        status = penstock.status(query)
        assert status is not None
        assert status["mode"] == "off"
        assert STOCK.provider in status["reason"]
        assert penstock.decisions(query).empty
    finally:
        query.stop()


@pytest.mark.parametrize("name", ["status", "decisions"])
def test_names_are_public(name: str) -> None:
    assert name in penstock.__all__
