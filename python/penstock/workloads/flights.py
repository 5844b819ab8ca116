"""Busy periods of airports: session windows over real departures, run once and measured.

``python -m penstock.workloads.flights`` runs one variant in a process of its own and writes what it measured as JSON.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from penstock.api.configure import configure
from penstock.workloads._tasks import shuffle_loads


@dataclass(frozen=True)
class Batch:
    """One micro-batch.

    Parameters
    ----------
    batch
        Its number, from 0.
    rows
        Input rows.
    tasks
        Tasks of the stateful stage.
    busiest_over_mean
        Rows that the busiest of these tasks read, over the mean.
    ms
        Duration of the batch, milliseconds.
    """

    batch: int
    rows: int
    tasks: int
    busiest_over_mean: float
    ms: int


def split(source: Path, folder: Path, batches: int) -> None:
    """Cut the flights into one file per batch, in the order of departure.

    Parameters
    ----------
    source
        The flights, a Parquet file in the order of departure.
    folder
        Where to write; made if need be.
    batches
        How many files.
    """
    table = pq.read_table(source)
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(batches):
        start, end = (table.num_rows * k // batches for k in (i, i + 1))
        pq.write_table(table.slice(start, end - start), folder / f"part-{i:04d}.parquet")


def query(flights: DataFrame) -> DataFrame:
    """Find the periods in which an airport has a departure at least every ten minutes.

    A row has the period, how many flights it had, and their delay. A watermark of one hour closes periods.
    """
    return (
        flights.withColumn("departure", sf.col("dep_utc").cast("timestamp"))
        .withWatermark("departure", "1 hour")
        .groupBy("origin", sf.session_window("departure", "10 minutes").alias("period"))
        .agg(sf.count("*").alias("flights"), sf.sum("delay_min").alias("delay_min"))
    )


def run(spark: SparkSession, source: Path, work: Path) -> list[Batch]:
    """Run the query over all files, one per batch, and keep what every batch answered.

    Parameters
    ----------
    spark
        A session.
    source
        Folder that :func:`split` wrote.
    work
        Folder for the checkpoint, and for the answers: ``answers/batch=N``.

    Returns
    -------
    list of Batch
        The batches that had input.
    """

    def keep(answer: DataFrame, batch: int) -> None:
        answer.write.parquet(str(work / "answers" / f"batch={batch}"))

    schema = spark.read.parquet(str(source)).schema
    flights = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(source))
    running = (
        query(flights)
        .writeStream.outputMode("append")
        .option("checkpointLocation", str(work / "checkpoint"))
        .trigger(availableNow=True)
        .foreachBatch(keep)
        .start()
    )
    running.awaitTermination()
    loads = shuffle_loads(spark, str(running.runId))
    return [
        Batch(p.batchId, p.numInputRows, loads[p.batchId].tasks, loads[p.batchId].busiest_over_mean, p.batchDuration)
        for p in running.recentProgress
        if p.numInputRows > 0
    ]


def session(penstock: bool, cores: int, partitions: int | None) -> SparkSession:
    """Make a local session.

    Parameters
    ----------
    penstock
        Whether with Penstock.
    cores
        How many cores.
    partitions
        ``spark.sql.shuffle.partitions``; None for Spark's default.
    """
    builder = (
        SparkSession.builder.master(f"local[{cores}]")
        .appName("flights")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.log.level", "ERROR")
    )
    if partitions is not None:
        builder = builder.config("spark.sql.shuffle.partitions", partitions)
    return (configure(builder) if penstock else builder).getOrCreate()


def main(arguments: Sequence[str]) -> int:
    """Run one variant; ``--json`` receives its batches."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--cores", type=int, required=True)
    parser.add_argument("--partitions", type=int)
    parser.add_argument("--penstock", action="store_true")
    args = parser.parse_args(arguments)
    spark = session(args.penstock, args.cores, args.partitions)
    try:
        args.json.write_text(json.dumps([asdict(b) for b in run(spark, args.source, args.work)]))
    finally:
        spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
