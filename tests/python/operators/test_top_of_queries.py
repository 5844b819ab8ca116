"""`penstock top` with a running application."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from harness import PENSTOCK, Engine, counting, write_events
from penstock.cli import main

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery


@pytest.fixture
def watched(application: SparkSession, tmp_path: Path) -> Iterator[StreamingQuery]:
    """Yield a query that has run three batches."""
    session = Engine(PENSTOCK.provider, PENSTOCK.partitions).session(application)
    query = counting(session, tmp_path).queryName("watched").format("noop").start()
    for number in range(3):
        write_events(tmp_path / "source", number, rows=60)
        query.processAllAvailable()
    yield query
    query.stop()


def url(application: SparkSession) -> str:
    found = application.sparkContext.uiWebUrl
    assert found is not None
    return found


def test_a_running_query_is_shown(
    application: SparkSession, watched: StreamingQuery, capsys: pytest.CaptureFixture[str]
) -> None:
    # Advancing the watermark may add a batch without data.
    progress = watched.lastProgress
    assert progress is not None
    newest = progress["batchId"]
    assert newest >= 2
    assert main(["top", url(application), "--once", "--query", "watched"]) == 0
    shown = capsys.readouterr().out
    assert "penstock-python-operators" in shown
    assert "watched running" in shown
    assert f"batch {newest}" in shown
    assert main(["top", url(application), "--json", "--query", str(watched.runId)]) == 0
    (status,) = json.loads(capsys.readouterr().out)["queries"]
    assert status["batches"][-1]["batchId"] == newest
    assert sum(batch["numInputRows"] for batch in status["batches"]) == 180
    (region,) = status["regions"]
    assert sum(region["rows"]) == {b["batchId"]: b["numInputRows"] for b in status["batches"]}[region["batch"]]
    (operator,) = region["operators"]
    assert operator == {"operator": region["region"], "rows": region["rows"], "busyNs": region["busyNs"]}
    (store,) = region["stores"]
    assert (store["operator"], store["store"]) == (region["region"], "default")
    assert (store["keys"], store["stateBytes"]) == (region["keys"], region["stateBytes"])
    assert sum(store["keys"]) > 0
