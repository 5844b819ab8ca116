"""Flights: which late departures wait for a late arrival."""

from collections.abc import Mapping
from datetime import timedelta
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from penstock.workloads.questions.question import TIME, Question, at

ON_THE_GROUND_MIN = 25
MILES_PER_MINUTE = 7.7
"""Speed of a flight. The data have no arrival times, so they are computed from departure time and distance."""
LATE_MIN = 15


def streams(flights: pa.Table) -> Mapping[str, pa.Table]:
    """Split flights into departures and arrivals, each sorted by its own time."""
    departs = at(flights["dep_utc"])
    minutes = pc.add(ON_THE_GROUND_MIN, pc.floor(pc.divide(flights["distance_mi"], MILES_PER_MINUTE)).cast(pa.int64()))
    arrives = pc.add(departs, pc.multiply(minutes, 60_000_000).cast(pa.duration("us")))
    flight = pa.array(range(flights.num_rows), pa.int32())
    late = flights["delay_min"]
    departures = pa.table({TIME: departs, "airport": flights["origin"], "flight": flight, "late_min": late})
    arrivals = pa.table({TIME: arrives, "airport": flights["destination"], "flight": flight, "late_min": late})
    return {"departures": departures, "arrivals": arrivals.sort_by([(TIME, "ascending"), ("flight", "ascending")])}


def answer(streams: Mapping[str, DataFrame]) -> DataFrame:
    """Find for every late departure the at least equally late flights that arrived there in the 90 minutes before.

    This is a join of two streams: each departure is matched with all arrivals at its airport in that time.
    """
    departures = streams["departures"].withWatermark(TIME, "10 minutes").alias("out")
    arrivals = streams["arrivals"].withWatermark(TIME, "10 minutes").alias("inbound")
    met = sf.expr(
        "out.airport = inbound.airport and inbound.time <= out.time and inbound.time > out.time - interval 90 minutes"
    )
    waits = sf.expr(f"out.late_min >= {LATE_MIN} and inbound.late_min >= out.late_min")
    return departures.join(arrivals, met & waits).select(
        "out.airport",
        "out.flight",
        sf.col("out.time").alias("left"),
        sf.col("inbound.flight").alias("waited_for"),
        sf.col("inbound.late_min").alias("late_min"),
    )


def trace(streams: Mapping[str, pa.Table]) -> pa.Table:
    """Compute the cost of each row: 1, and for a departure also its matches, the arrivals in the 90 minutes before."""
    departures, arrivals = streams["departures"], streams["arrivals"]
    arrival_rows = _by_airport(arrivals)
    matches = np.zeros(departures.num_rows)
    for airport, rows in _by_airport(departures).items():
        arrived = _micros(arrivals)[arrival_rows.get(airport, [])]
        left = _micros(departures)[rows]
        first = np.searchsorted(arrived, left - 90 * 60_000_000, "right")
        matches[rows] = np.searchsorted(arrived, left, "right") - first
    both = pa.concat_tables(
        pa.table({TIME: rows[TIME], "key": rows["airport"], "cost": 1.0 + count})
        for rows, count in ((departures, matches), (arrivals, np.zeros(arrivals.num_rows)))
    )
    return both.take(np.argsort(_micros(both), kind="stable"))


def _micros(rows: pa.Table) -> NDArray[np.int64]:
    return np.asarray(rows[TIME].cast(pa.int64()).to_numpy())


def _by_airport(rows: pa.Table) -> dict[str, NDArray[np.int64]]:
    """Return the row numbers of each airport, in ascending order."""
    airports = rows["airport"].combine_chunks().dictionary_encode()
    index = airports.indices.to_numpy()
    order = np.argsort(index, kind="stable")
    bounds = np.searchsorted(index[order], np.arange(len(airports.dictionary) + 1))
    return {name: order[a:b] for name, (a, b) in zip(airports.dictionary.to_pylist(), pairwise(bounds), strict=True)}


QUESTION = Question(
    "Which departures are waiting for a late inbound flight?",
    "flights.parquet",
    timedelta(days=10),
    streams,
    answer,
    trace,
    timedelta(hours=1),
)
