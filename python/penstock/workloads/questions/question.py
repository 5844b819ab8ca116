"""What is asked of a stream."""

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

    The query answers in append mode, so that what it says does not depend on where its batches end.

    Parameters
    ----------
    asks
        In words.
    file
        Of the real data, in the project's folder ``data``.
    span
        Event time that is replayed, from the start of the data on.
    streams
        From the file's rows to a table for each stream, in the order of `TIME`.
    answer
        From the streams, each with a column `TIME` of Spark's timestamps, to the answers.
    trace
        From the streams to a table of (`TIME`, ``key``, ``cost``): the work that each key of the query makes, in the
        order of time, so that ways to place keys can be compared by counting.
    interval
        Event time of a batch, where that is counted.
    """

    asks: str
    file: str
    span: timedelta
    streams: Callable[[pa.Table], Mapping[str, pa.Table]]
    answer: Callable[[Mapping[str, DataFrame]], DataFrame]
    trace: Callable[[Mapping[str, pa.Table]], pa.Table]
    interval: timedelta


def keyed(rows: pa.Table, key: str) -> pa.Table:
    """Make a trace of rows that cost the same, in the order of their times."""
    return pa.table({TIME: rows[TIME], "key": rows[key], "cost": np.ones(rows.num_rows)})


def at(milliseconds: pa.ChunkedArray) -> pa.ChunkedArray:
    """Make the column `TIME` from timestamps without a time zone, which are of UTC."""
    return milliseconds.cast(pa.timestamp("us")).cast(MICROSECONDS)
