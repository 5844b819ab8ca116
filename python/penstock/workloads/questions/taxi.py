"""Taxis: trips and fares of each zone over time."""

from collections.abc import Mapping
from datetime import timedelta

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from penstock.workloads.questions.question import TIME, Question, at, keyed


def streams(trips: pa.Table) -> Mapping[str, pa.Table]:
    """Keep start time, start zone and fare of each trip."""
    # The times are local times of New York. They are treated as UTC.
    return {"trips": pa.table({TIME: at(trips["pickup_local"]), **{n: trips[n] for n in ("pu_zone", "fare_cents")}})}


def answer(streams: Mapping[str, DataFrame]) -> DataFrame:
    """Count trips and sum fares of each zone over the last hour, every minute."""
    return (
        streams["trips"]
        .withWatermark(TIME, "10 minutes")
        .groupBy(sf.window(TIME, "1 hour", "1 minute").alias("hour"), "pu_zone")
        .agg(sf.count("*").alias("trips"), sf.sum("fare_cents").alias("fare_cents"))
        .select("hour.start", "pu_zone", "trips", "fare_cents")
    )


QUESTION = Question(
    "How much did taxis earn in each zone in the last hour, every minute?",
    "taxi_green.parquet",
    timedelta(days=20),
    streams,
    answer,
    lambda streams: keyed(streams["trips"], "pu_zone"),
    timedelta(hours=1),
)
