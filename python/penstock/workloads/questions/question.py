"""A question and the streaming query that answers it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

TIME = "time"
"""Column of every stream's table: event time, of the type `MICROSECONDS`."""

MICROSECONDS = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class Question:
    """A question, its data, and the query that answers it.

    The query runs in append mode, so that its answers do not depend on where its batches end.

    Parameters
    ----------
    asks
        Text of the question.
    file
        Name of the file with the data, in the project's folder ``data``.
    span
        Event time that is replayed, from the start of the data.
    streams
        Function that splits the rows of the file into a table for each stream, sorted by `TIME`.
    answer
        Function that makes the query from the streams, which have a timestamp column `TIME`.
    trace
        Function that makes a trace from the streams: a table with `TIME`, ``key`` and ``cost``, sorted by time. It has
        the work for each key of the query, so that ways to place keys can be compared by simulation.
    interval
        Event time of a batch in that simulation.
    """

    asks: str
    file: str
    span: timedelta
    streams: Callable[[pa.Table], Mapping[str, pa.Table]]
    answer: Callable[[Mapping[str, DataFrame]], DataFrame]
    trace: Callable[[Mapping[str, pa.Table]], pa.Table]
    interval: timedelta


def keyed(rows: pa.Table, key: str) -> pa.Table:
    """Make a trace of rows that all have the same cost. The rows must be sorted by time."""
    return pa.table({TIME: rows[TIME], "key": rows[key], "cost": np.ones(rows.num_rows)})


def at(milliseconds: pa.ChunkedArray) -> pa.ChunkedArray:
    """Make the column `TIME` from timestamps without a time zone, which are in UTC."""
    return milliseconds.cast(pa.timestamp("us")).cast(MICROSECONDS)
