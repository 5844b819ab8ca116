"""Books: how often each word occurs over time."""

from collections.abc import Mapping
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from penstock.workloads.questions.question import MICROSECONDS, TIME, Question, keyed


def streams(lines: pa.Table) -> Mapping[str, pa.Table]:
    """Make a stream with one line per second."""
    seconds = lines["line_no"].cast(pa.int64())
    return {"lines": pa.table({TIME: pc.multiply(seconds, 1_000_000).cast(MICROSECONDS), "text": lines["text"]})}


def answer(streams: Mapping[str, DataFrame]) -> DataFrame:
    """Count each word in windows of 1,000 lines that start every 200 lines."""
    word = sf.explode(sf.split(sf.lower("text"), "[^\\p{L}]+")).alias("word")
    return (
        streams["lines"]
        .withWatermark(TIME, "10 seconds")
        .select(TIME, word)
        .where("word != ''")
        .groupBy(sf.window(TIME, "1000 seconds", "200 seconds").alias("lines"), "word")
        .count()
        .select("lines.start", "word", "count")
    )


def trace(streams: Mapping[str, pa.Table]) -> pa.Table:
    """Make a row for every word."""
    lines = streams["lines"]
    words = pc.split_pattern_regex(pc.utf8_lower(lines["text"].combine_chunks()), "[^\\p{L}]+")
    table = pa.table({TIME: lines[TIME].combine_chunks().take(pc.list_parent_indices(words)), "word": words.flatten()})
    return keyed(table.filter(pc.not_equal(table["word"], "")), "word")


QUESTION = Question(
    "How often did each word occur in the last thousand lines?",
    "books.parquet",
    timedelta(seconds=100_000),
    streams,
    answer,
    trace,
    timedelta(seconds=1000),
)
