"""Run the query of the demonstration once.

Each run has a process of its own, because the plugins of a running Spark cannot be changed. ``python -m
penstock.demo.play`` writes its events to a file descriptor, as lines of `penstock.demo.events`.
"""

import argparse
import datetime as dt
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.api.configure import configure
from penstock.demo.events import Batch, Delivered, Event, Session, Started, TaskLoads, write
from penstock.workloads.feeds import Feed, FileFeed
from penstock.workloads.questions import QUESTIONS
from penstock.workloads.replay import Replay, pieces_of
from penstock.workloads.shuffle_loads import shuffle_loads

WARM_UP = 0.1
"""Share of the pieces that is replayed before the clock starts, because a new JVM is slow."""
LOOK_EVERY_S = 0.1
KEPT_PROGRESS_UPDATES = 10_000


def session(penstock: bool, cores: int, conf: Sequence[str]) -> SparkSession:
    """Create a local session.

    Parameters
    ----------
    penstock
        Whether Penstock is enabled.
    cores
        Number of cores.
    conf
        Additional settings of Spark, each as ``KEY=VALUE``.
    """
    builder = (
        SparkSession.builder.master(f"local[{cores}]")
        .appName("penstock demo")
        .config("spark.ui.port", "0")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.streaming.numRecentProgressUpdates", KEPT_PROGRESS_UPDATES)
        .config("spark.log.level", "ERROR")
    )
    for setting in conf:
        key, _, value = setting.partition("=")
        builder = builder.config(key, value)
    return (configure(builder) if penstock else builder).getOrCreate()


def play(
    spark: SparkSession,
    question: str,
    cut_into: Mapping[str, Sequence[Path]],
    feed: Feed,
    work: Path,
    *,
    seconds: float,
    tell: Callable[[Event], None],
) -> None:
    """Replay the streams to the query of a question, and report events.

    Parameters
    ----------
    spark
        Session that runs the query.
    question
        Name of the question.
    cut_into
        Files of the pieces of each stream, by its name.
    feed
        Feed that delivers the pieces to the query.
    work
        Folder for the checkpoint and for the answers, ``answers/batch=N``.
    seconds
        Duration of the replay in seconds.
    tell
        Function that is called with each event.
    """
    replay = Replay(cut_into, feed, lambda d: tell(Delivered(d.piece, d.at_s, d.rows)))
    tell(Session(spark.sparkContext.uiWebUrl or "", replay.pieces))
    warm_up = max(2, int(replay.pieces * WARM_UP))
    replay.deliver(0)
    schemas = {stream: spark.read.parquet(str(files[0])).schema for stream, files in cut_into.items()}
    running = start({s: feed.read(spark, s, schema) for s, schema in schemas.items()}, question, work)
    progress = _Progress(running, feed, tell)
    _wait(running, progress)
    for piece in range(1, warm_up):
        replay.deliver(piece)
    _wait(running, progress)
    tell(Started(time.time(), warm_up))
    delivering = replay.start(warm_up, seconds)
    while not delivering.done() and running.isActive:
        time.sleep(LOOK_EVERY_S)
        progress.report_new()
    delivering.result()
    _wait(running, progress)
    running.stop()
    progress.report_new()
    loads = shuffle_loads(spark, str(running.runId))
    tell(
        TaskLoads(
            {str(batch): load.tasks for batch, load in loads.items()},
            {str(batch): load.imbalance for batch, load in loads.items()},
        )
    )


def start(streams: Mapping[str, DataFrame], question: str, work: Path) -> StreamingQuery:
    """Start the query of a question on its streams."""

    def keep(answers: DataFrame, batch: int) -> None:
        answers.write.mode("overwrite").parquet(str(work / "answers" / f"batch={batch}"))

    return (
        QUESTIONS[question]
        .answer(streams)
        .writeStream.outputMode("append")
        .option("checkpointLocation", str(work / "checkpoint"))
        .foreachBatch(keep)
        .start()
    )


class _Progress:
    """Reports each batch of a running query once."""

    def __init__(self, running: StreamingQuery, feed: Feed, tell: Callable[[Event], None]) -> None:
        self._running, self._feed, self._tell = running, feed, tell
        self._last = -1

    def report_new(self) -> None:
        for progress in self._running.recentProgress:
            # Without new data, Spark reports progress with the number of the newest batch again.
            if progress.batchId > self._last and "addBatch" in progress.durationMs:
                self._last = progress.batchId
                self._tell(_batch(progress, self._feed))


def _batch(progress: Any, feed: Feed) -> Batch:
    start_s = dt.datetime.fromisoformat(progress.timestamp.replace("Z", "+00:00")).timestamp()
    rows = {feed.stream_of(s.description): s.numInputRows for s in progress.sources}
    return Batch(progress.batchId, start_s + progress.batchDuration / 1000, progress.batchDuration, rows)


def _wait(running: StreamingQuery, progress: _Progress) -> None:
    running.processAllAvailable()
    progress.report_new()


def main(arguments: Sequence[str]) -> int:
    """Run one variant."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--question", required=True, choices=QUESTIONS)
    parser.add_argument("--cut-into", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--cores", type=int, required=True)
    parser.add_argument("--conf", action="append", default=[])
    parser.add_argument("--penstock", action="store_true")
    parser.add_argument("--kafka", metavar="HOST:PORT")
    parser.add_argument("--events", type=int, required=True, help="file descriptor")
    args = parser.parse_args(arguments)
    cut_into = pieces_of(args.cut_into)
    with (
        os.fdopen(args.events, "w", buffering=1) as events,
        _feed(args.kafka, cut_into, args.work) as feed,
        session(args.penstock, args.cores, args.conf) as spark,
    ):
        play(
            spark,
            args.question,
            cut_into,
            feed,
            args.work,
            seconds=args.seconds,
            tell=lambda e: print(write(e), file=events),
        )
    return 0


def _feed(kafka: str | None, cut_into: Mapping[str, Sequence[Path]], work: Path) -> AbstractContextManager[Feed]:
    if kafka is None:
        return nullcontext(FileFeed(work / "source", cut_into))
    # Imported here because only --kafka needs the Kafka client.
    from penstock.workloads.feeds.kafka import KafkaFeed  # noqa: PLC0415

    return KafkaFeed(kafka, cut_into)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
