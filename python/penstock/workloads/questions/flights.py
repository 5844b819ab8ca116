"""Flights, and which of them wait for others."""

from collections.abc import Mapping
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from penstock.workloads.questions.question import TIME, Question, at

ON_THE_GROUND_MIN = 25
MILES_PER_MINUTE = 7.7
"""The data have no times of arrival: a flight arrives so long after its departure, as its distance takes."""
LATE_MIN = 15


def streams(flights: pa.Table) -> Mapping[str, pa.Table]:
    """Split flights into departures and arrivals, each in the order of its own time."""
    departs = at(flights["dep_utc"])
    minutes = pc.add(ON_THE_GROUND_MIN, pc.floor(pc.divide(flights["distance_mi"], MILES_PER_MINUTE)).cast(pa.int64()))
    arrives = pc.add(departs, pc.multiply(minutes, 60_000_000).cast(pa.duration("us")))
    flight = pa.array(range(flights.num_rows), pa.int32())
    late = flights["delay_min"]
    departures = pa.table({TIME: departs, "airport": flights["origin"], "flight": flight, "late_min": late})
    arrivals = pa.table({TIME: arrives, "airport": flights["destination"], "flight": flight, "late_min": late})
    return {"departures": departures, "arrivals": arrivals.sort_by([(TIME, "ascending"), ("flight", "ascending")])}


def answer(streams: Mapping[str, DataFrame]) -> DataFrame:
    """Find for every late departure the flights that came in later still, in the 90 minutes before, where it left.

    A join of two streams: every departure meets all that has arrived at its airport in that time.
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


QUESTION = Question(
    "Which departures are waiting for a late inbound flight?",
    "flights.parquet",
    timedelta(days=10),
    streams,
    answer,
)
