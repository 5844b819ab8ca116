"""Results of the demonstration: a table, charts and JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.demo.record import Record, waited
from penstock.demo.variant import Variant

if TYPE_CHECKING:
    from penstock.charts.chart import Chart

HEADER = ("run", "batches", "ms", "max", "rows/s", "p50 s", "p99 s", "tasks", "imbalance")
"""Columns of the result table.

``ms`` and ``max`` are the median and longest batch. ``p50 s`` and ``p99 s`` are the times within which 50 % and 99 % of
the rows were answered. ``tasks`` is the number of tasks of the stage that read most shuffled rows, and ``imbalance``
the rows of its busiest task over the mean.
"""


def summary(compared: Sequence[Variant], records: Mapping[str, Record]) -> list[list[str]]:
    """Return the rows of the result table, one for each run, with the columns of `HEADER`."""
    rows = []
    for variant in compared:
        record = records[variant.name]
        ms = record.batch_ms
        rows.append(
            [
                variant.title,
                str(len(ms)),
                f"{np.median(ms):,.0f}" if len(ms) else "",
                f"{ms.max():,.0f}" if len(ms) else "",
                f"{record.rows_per_second:,.0f}",
                f"{record.latency_s(0.5):.1f}",
                f"{record.latency_s(0.99):.1f}",
                str(record.tasks),
                f"{record.imbalance:.2f}",
            ]
        )
    return rows


def document(compared: Sequence[Variant], records: Mapping[str, Record]) -> dict[str, Any]:
    """Return all measurements by the name of the variant. Times are seconds since the start of the run's clock."""
    return {
        variant.name: {"title": variant.title, "how": variant.how, **_record(records[variant.name])}
        for variant in compared
    }


def _record(record: Record) -> dict[str, Any]:
    start = record.started.at_s if record.started else 0.0
    return {
        "rowsPerSecond": record.rows_per_second,
        "latencyMedianS": record.latency_s(0.5),
        "latencyP99S": record.latency_s(0.99),
        "batchMedianMs": float(np.median(record.batch_ms)) if len(record.batch_ms) else None,
        "tasks": record.tasks,
        "imbalance": record.imbalance,
        "delivered": [asdict(d) | {"at_s": d.at_s - start} for d in record.delivered],
        "batches": [asdict(b) | {"end_s": b.end_s - start} for b in record.batches],
    }


def charts(compared: Sequence[Variant], records: Mapping[str, Record]) -> list[Chart]:
    """Return charts over time of the load, the waiting time of rows and the duration of batches."""
    from penstock.charts.chart import Chart, Line  # noqa: PLC0415, not needed without pictures

    def since(record: Record, at_s: float) -> float:
        return at_s - (record.started.at_s if record.started else 0.0)

    last = records[compared[-1].name]
    load = Line(
        "rows delivered",
        [since(last, piece.at_s) for piece in last.delivered],
        [float(sum(piece.rows.values())) for piece in last.delivered],
    )
    waits, batches = [], []
    for variant in compared:
        record = records[variant.name]
        points = sorted((since(record, w.at_s), w.seconds) for w in waited(record.delivered, record.batches))
        waits.append(Line(variant.title, [at_s for at_s, _ in points], [seconds for _, seconds in points]))
        batches.append(
            Line(variant.title, [since(record, b.end_s) for b in record.working], [float(b.ms) for b in record.working])
        )
    return [
        Chart("seconds", "rows per piece", [load]),
        Chart("seconds", "seconds until rows were answered", waits, log_y=True),
        Chart("seconds", "ms per batch", batches, log_y=True),
    ]
