"""Run the query once, in a process of its own: a session cannot change its plugins.

``python -m penstock.demo.play`` writes what happens to a file descriptor, as lines of `penstock.demo.events`.
"""

import argparse
import datetime as dt
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.api.configure import configure
from penstock.demo.events import Batch, Delivered, Event, Session, Started, TaskLoads, write
from penstock.workloads.questions import QUESTIONS
from penstock.workloads.replay import Replay
from penstock.workloads.shuffle_loads import shuffle_loads

WARM_UP = 0.1
"""Part of the pieces that is played before the clock starts: a new JVM is slow whatever it runs."""
LOOK_EVERY_S = 0.1
KEPT = 10_000


def session(penstock: bool, cores: int, conf: Sequence[str]) -> SparkSession:
    """Make a local session.

    Parameters
    ----------
    penstock
        Whether with Penstock.
    cores
        How many cores.
    conf
        More settings, ``KEY=VALUE``.
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
        .config("spark.sql.streaming.numRecentProgressUpdates", KEPT)
        .config("spark.log.level", "ERROR")
    )
    for setting in conf:
        key, _, value = setting.partition("=")
        builder = builder.config(key, value)
    return (configure(builder) if penstock else builder).getOrCreate()


def play(
    spark: SparkSession, question: str, cut_into: Path, work: Path, *, seconds: float, tell: Callable[[Event], None]
) -> None:
    """Replay the streams to the query, and tell what happens.

    Parameters
    ----------
    spark
        A session.
    question
        Name of a question.
    cut_into
        Its streams, in pieces.
    work
        Folder for sources, checkpoint and ``answers/batch=N``.
    seconds
        How long the replay takes.
    tell
        Takes what happens.
    """
    replay = Replay(cut_into, work / "source", lambda d: tell(Delivered(d.piece, d.at_s, d.rows)))
    tell(Session(spark.sparkContext.uiWebUrl or "", replay.pieces))
    warm_up = max(2, int(replay.pieces * WARM_UP))
    replay.deliver(0)
    running = start(spark, question, cut_into, work)
    told = _Progress(running, tell)
    _wait(running, told)
    for piece in range(1, warm_up):
        replay.deliver(piece)
    _wait(running, told)
    tell(Started(time.time(), warm_up))
    delivering = replay.start(warm_up, seconds)
    while delivering.is_alive() and running.isActive:
        time.sleep(LOOK_EVERY_S)
        told.look()
    delivering.join()
    _wait(running, told)
    running.stop()
    told.look()
    loads = shuffle_loads(spark, str(running.runId))
    tell(
        TaskLoads(
            {str(batch): load.tasks for batch, load in loads.items()},
            {str(batch): load.busiest_over_mean for batch, load in loads.items()},
        )
    )


def start(spark: SparkSession, question: str, cut_into: Path, work: Path) -> StreamingQuery:
    """Start the query."""

    def keep(answers: DataFrame, batch: int) -> None:
        answers.write.mode("overwrite").parquet(str(work / "answers" / f"batch={batch}"))

    streams = {
        folder.name: spark.readStream.schema(spark.read.parquet(str(folder)).schema).parquet(
            str(work / "source" / folder.name)
        )
        for folder in sorted(cut_into.iterdir())
    }
    return (
        QUESTIONS[question]
        .answer(streams)
        .writeStream.outputMode("append")
        .option("checkpointLocation", str(work / "checkpoint"))
        .foreachBatch(keep)
        .start()
    )


class _Progress:
    """Tells of batches, each once."""

    def __init__(self, running: StreamingQuery, tell: Callable[[Event], None]) -> None:
        self._running, self._tell = running, tell
        self._last = -1

    def look(self) -> None:
        for progress in self._running.recentProgress:
            # Where nothing is new Spark repeats the newest batch's number.
            if progress.batchId > self._last and "addBatch" in progress.durationMs:
                self._last = progress.batchId
                self._tell(_batch(progress))


def _batch(progress: Any) -> Batch:
    begun = dt.datetime.fromisoformat(progress.timestamp.replace("Z", "+00:00")).timestamp()
    rows = {Path(s.description.rstrip("]")).name: s.numInputRows for s in progress.sources}
    return Batch(progress.batchId, begun + progress.batchDuration / 1000, progress.batchDuration, rows)


def _wait(running: StreamingQuery, told: _Progress) -> None:
    running.processAllAvailable()
    told.look()


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
    parser.add_argument("--events", type=int, required=True, help="file descriptor")
    args = parser.parse_args(arguments)
    spark = session(args.penstock, args.cores, args.conf)
    with os.fdopen(args.events, "w", buffering=1) as events:
        try:
            play(
                spark,
                args.question,
                args.cut_into,
                args.work,
                seconds=args.seconds,
                tell=lambda e: print(write(e), file=events),
            )
        finally:
            spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
