"""A client of Spark Connect: ``connect_client.py URL CHECKPOINT``.

The server has the plugin, unless CHECKPOINT is ``without``. Exit status 0 means that all checks passed. It imports from
`tests/waiting`, which must be in ``PYTHONPATH``.
"""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any

import penstock
from eventually import eventually
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

PATIENCE_S = 120


def batches_of(query: StreamingQuery, least: int) -> None:
    """Wait until a query has run at least this number of further batches."""
    start = len(query.recentProgress)

    def have_run() -> bool:
        assert query.exception() is None, query.exception()
        return len(query.recentProgress) >= start + least

    eventually(have_run, timeout_s=PATIENCE_S, what=lambda: f"{least} batches run: {query.status}")


def start(spark: SparkSession, name: str, checkpoint: str | None, **options: str) -> StreamingQuery:
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 100).option("numPartitions", 2).load()
    keyed = rows.select((sf.col("value") % 5).cast("string").alias("key"), (sf.col("value") % 2).alias("part"))
    writer = keyed.groupBy("key", "part").count().writeStream.outputMode("update").format("noop").queryName(name)
    writer = writer.options(**options) if checkpoint is None else writer.option("checkpointLocation", checkpoint)
    return writer.trigger(processingTime="200 milliseconds").start()


def refusal(call: Any, *arguments: Any) -> penstock.PenstockError:
    try:
        call(*arguments)
    except penstock.PenstockError as error:
        return error
    raise AssertionError(f"{call.__name__}{arguments} was not refused")


def region(query: StreamingQuery) -> dict[str, Any]:
    first: dict[str, Any] = penstock.status(query)["regions"][0]
    return first


def with_plugin(spark: SparkSession, checkpoint: str) -> None:
    query = start(spark, "counts", checkpoint)
    batches_of(query, 2)
    status = penstock.status(query)
    assert (status["mode"], status["shards"], status["exception"]) == ("on", 16, None), status
    # Absent where a batch took too little time to say.
    eventually(
        lambda: region(query)["heavyKeys"][0]["busyShare"],
        timeout_s=PATIENCE_S,
        what=lambda: f"a batch says how busy its heavy keys were: {region(query)['heavyKeys']}",
    )
    table = penstock.decisions(query)
    assert table["batch"].is_monotonic_increasing
    assert (table["tasks"] == 2).all()
    assert table["decision"].str.len().min() > 0

    penstock.set(query, "spark.penstock.tasks", 1)
    penstock.pin(query, "3", 1)
    penstock.pin(query, "33", 1)
    batches_of(query, 2)
    assert region(query)["tasks"] == 1
    assert {key["key"]: key["seen"] for key in region(query)["pinnedKeys"]} == {"3, 1": True, "33, 1": False}
    penstock.unpin(query, "33", 1)
    batches_of(query, 2)
    assert [key["key"] for key in region(query)["pinnedKeys"]] == ["3, 1"]

    unknown = refusal(penstock.set, query, "task", 2)
    assert unknown.error_class == "PENSTOCK_UNKNOWN_SETTING"
    assert "Did you mean tasks?" in unknown.detail
    assert "SQLSTATE" not in unknown.detail
    assert refusal(penstock.set, query, "tasks", "many").error_class == "PENSTOCK_INVALID_SETTING"
    assert "region 0: STRING, BIGINT" in refusal(penstock.pin, query, 3, 1).detail
    assert refusal(penstock.pin, query, "3").error_class == "PENSTOCK_NO_SUCH_KEY"

    spark.sql("CALL penstock.set('counts', 'tasks', '2')")
    batches_of(query, 2)
    assert region(query)["tasks"] == 2
    query.stop()
    assert refusal(penstock.set, query, "tasks", 2).error_class == "PENSTOCK_NOT_RUNNING"

    failed = start(spark, "failed", None, **{"penstock.theta": "0.5"})
    assert not failed.isActive
    assert "PENSTOCK_INVALID_SETTING" in penstock.status(failed)["exception"]
    assert "failed before its first batch had ended" in penstock.status(failed)["reason"]


def without_plugin(spark: SparkSession) -> None:
    query = start(spark, "plain", None)
    batches_of(query, 1)
    reason = penstock.status(query)["reason"]
    assert "Penstock is not enabled in this server" in reason, reason
    assert "--conf spark.plugins=io.penstock.PenstockPlugin" in reason
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        empty = penstock.decisions(query)
    assert empty.empty
    assert empty.attrs["reason"] == reason
    assert any(reason in str(warning.message) for warning in caught)
    refused = refusal(penstock.set, query, "tasks", 2)
    assert refused.error_class == "PENSTOCK_NOT_ENABLED"
    assert "in this server" in refused.detail
    query.stop()


if __name__ == "__main__":
    session = SparkSession.builder.remote(sys.argv[1]).config("spark.sql.shuffle.partitions", "2").getOrCreate()
    if sys.argv[2] == "without":
        without_plugin(session)
    else:
        with_plugin(session, sys.argv[2])
    session.stop()
