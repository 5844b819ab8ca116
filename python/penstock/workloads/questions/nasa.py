"""A web server: how long its visitors stay."""

from collections.abc import Mapping
from datetime import timedelta

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from penstock.workloads.questions.question import TIME, Question, at, keyed


def streams(requests: pa.Table) -> Mapping[str, pa.Table]:
    """Keep time, host and size of each request."""
    return {"requests": pa.table({TIME: at(requests["time_utc"]), **{n: requests[n] for n in ("host_id", "bytes")}})}


def answer(streams: Mapping[str, DataFrame]) -> DataFrame:
    """Find the sessions of each host: requests less than 30 minutes apart."""
    return (
        streams["requests"]
        .withWatermark(TIME, "1 minute")
        .groupBy(sf.session_window(TIME, "30 minutes").alias("visit"), "host_id")
        .agg(sf.count("*").alias("requests"), sf.sum("bytes").alias("bytes"))
        .select("visit.start", "visit.end", "host_id", "requests", "bytes")
    )


QUESTION = Question(
    "How long does each visitor of a web server stay, and what do they load?",
    "nasa_http_19950709.parquet",
    timedelta(days=1),
    streams,
    answer,
    lambda streams: keyed(streams["requests"], "host_id"),
    timedelta(minutes=15),
)
