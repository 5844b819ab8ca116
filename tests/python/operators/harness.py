"""Runs a streaming query with plain Spark or with Penstock over the same files and records the rows of every batch."""

from __future__ import annotations

import json
import os
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql.functions import col, timestamp_seconds

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming import DataStreamWriter

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
PARTITIONS = "spark.sql.shuffle.partitions"
STATE_PARTITIONS = "spark.sql.streaming.internal.stateStore.partitions"
ROCKSDB_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"

SEED = int(os.environ.get("PENSTOCK_TEST_SEED", "1"))
FILES_PER_RUN = 3
SECONDS_PER_FILE = 5


@dataclass(frozen=True)
class Engine:
    """State store of a query, and the settings that go with it."""

    provider: str
    partitions: int
    conf: dict[str, str] = field(default_factory=dict)
    chaos: bool = False

    def options(self, run: int) -> dict[str, str]:
        """Options of the n-th run. With `chaos`, each run has its own random binding and number of tasks."""
        return {f"penstock.{name}": f"chaos({SEED + run})" for name in ("policy", "tasks")} if self.chaos else {}

    def session(self, application: SparkSession) -> SparkSession:
        session = application.newSession()
        conf = {PROVIDER: self.provider, PARTITIONS: self.partitions, STATE_PARTITIONS: self.partitions, **self.conf}
        for key, value in conf.items():
            session.conf.set(key, str(value))
        return session


STOCK = Engine(
    "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    3,
    {"spark.penstock.mode": "off", ROCKSDB_CHANGELOG: "true"},
)
PENSTOCK = Engine("io.penstock.PenstockStateStoreProvider", 32, chaos=True)


@dataclass
class Answer:
    """Sorted rows of each batch that returned any; number of state stores and report of each batch."""

    batches: dict[int, list[str]]
    store_instances: list[int]
    reports: list[Row]


def write_events(folder: Path, number: int, rows: int) -> None:
    """Write one file of seeded events. The source reads files in the order of their modification times."""
    source = random.Random(SEED * 1000 + number)  # noqa: S311
    events = (
        {
            "k": source.randrange(3 if source.random() < 0.3 else 30),
            "v": source.randrange(50),
            "t": number * SECONDS_PER_FILE + source.randrange(8),
        }
        for _ in range(rows)
    )
    put(folder / f"{number:03d}.json", "\n".join(json.dumps(e) for e in events), modified_s=1.7e9 + number * 10)


def put(path: Path, text: str, modified_s: float | None = None) -> None:
    """Write a file that a running query reads. A query never reads a file again that it saw while it was incomplete."""
    # Spark ignores files whose names begin with a dot.
    hidden = path.with_name(f".{path.name}")
    hidden.write_text(text)
    if modified_s is not None:
        os.utime(hidden, (modified_s, modified_s))
    hidden.rename(path)


def events(session: SparkSession, folder: Path) -> DataFrame:
    """Return a stream of the events: one file per batch, with a watermark on their time."""
    return (
        session.readStream.schema("k long, v long, t long")
        .option("maxFilesPerTrigger", 1)
        .json(str(folder))
        .withColumn("ts", timestamp_seconds(col("t")))
        .withWatermark("ts", "3 seconds")
    )


def counting(session: SparkSession, folder: Path, mode: str = "update") -> DataStreamWriter:
    """Return a query, not started, that counts the events of each key in ``source`` and uses ``checkpoint``."""
    source = folder / "source"
    source.mkdir()
    counted = events(session, source).groupBy("k").count()
    return counted.writeStream.outputMode(mode).option("checkpointLocation", str(folder / "checkpoint"))


def run(
    application: SparkSession,
    engine: Engine,
    folder: Path,
    query: Callable[[SparkSession, DataFrame], DataFrame],
    conf: dict[str, str],
) -> Answer:
    """Run a query over two sets of files, with a restart in between."""
    session = engine.session(application)
    for key, value in conf.items():
        session.conf.set(key, value)
    source, checkpoint = folder / "source", folder / "checkpoint"
    source.mkdir(parents=True)
    answer = Answer({}, [], [])

    def record(rows: DataFrame, batch: int) -> None:
        if found := sorted(str(tuple(row)) for row in rows.collect()):
            answer.batches[batch] = found

    for run_number in range(2):
        for number in range(run_number * FILES_PER_RUN, (run_number + 1) * FILES_PER_RUN):
            write_events(source, number, rows=60)
        started = (
            query(session, events(session, source))
            .writeStream.outputMode("update")
            .option("checkpointLocation", str(checkpoint))
            .options(**engine.options(run_number))
            .trigger(availableNow=True)
            .foreachBatch(record)
            .start()
        )
        try:
            assert started.awaitTermination(180), f"the query did not end within 180 s: {started.lastProgress}"
        finally:
            started.stop()
        for progress in started.recentProgress:
            operators = json.loads(progress.json)["stateOperators"]
            if operators:
                answer.store_instances.append(operators[0]["numStateStoreInstances"])
                answer.reports.append(progress.observedMetrics["penstock"])
    recorded = json.loads((checkpoint / "offsets" / "0").read_text().splitlines()[1])["conf"]
    assert (recorded[PROVIDER], recorded[PARTITIONS]) == (engine.provider, str(engine.partitions))
    return answer
