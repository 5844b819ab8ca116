"""What the measuring programs wrote, and the statistics of it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Batch = Mapping[str, Any]
Measure = Callable[[Batch], "float | None"]


@dataclass(frozen=True)
class Series:
    """One side of a comparison: its labels, and its measured batches in their order."""

    labels: Mapping[str, str]
    batches: Sequence[Batch]

    def values(self, measure: Measure) -> list[float]:
        """Measure every batch; batches where there is nothing to measure are left out."""
        return [v for v in map(measure, self.batches) if v is not None]


@dataclass(frozen=True)
class Summary:
    """Median and spread of ``n`` values."""

    median: float
    p10: float
    p90: float
    p99: float
    n: int


def read(lines: Iterable[str]) -> list[Series]:
    """Read a report of the measuring programs, a JSON object per line."""
    parsed = (json.loads(line) for line in lines if line.strip())
    return [Series(p["case"], p["batches"]) for p in parsed]


def find(series: Sequence[Series], **labels: str) -> Series | None:
    """Find the series with these labels; None where it was not measured, or has no batch."""
    found = [s for s in series if s.batches and all(s.labels.get(k) == v for k, v in labels.items())]
    return found[0] if found else None


def quantile(values: Sequence[float], q: float) -> float:
    """Estimate a quantile by linear interpolation between the two nearest values.

    Parameters
    ----------
    values
        At least one, in any order.
    q
        From 0, the smallest, to 1, the largest.
    """
    ordered = sorted(values)
    at = q * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (at - below)


def summarise(values: Sequence[float]) -> Summary:
    """Summarise at least one value."""
    return Summary(
        quantile(values, 0.5), quantile(values, 0.1), quantile(values, 0.9), quantile(values, 0.99), len(values)
    )


def batch_ms(batch: Batch) -> float | None:
    """Whole time of a batch, in ms: from Spark's decision to run it to its commit; None of what is no batch."""
    return float(batch["ms"]["triggerExecution"]) if "ms" in batch else None


def add_batch_ms(batch: Batch) -> float:
    """Time that the batch's plan ran, in ms: planning of the physical plan and all stages."""
    return float(batch["ms"]["addBatch"])


def stage_ms(batch: Batch) -> float:
    """Time of the stateful stage, in ms: from its submission to its end."""
    return float(batch["stage"])


def processor_ms(batch: Batch) -> float:
    """Processor time of Spark's process in the batch, in ms, over all cores; without Python workers."""
    return float(batch["processor"])


def imbalance(batch: Batch) -> float:
    """Rows of the busiest task of the stateful stage over the mean of its tasks."""
    rows = batch["rows"]
    return float(max(rows) * len(rows) / sum(rows))


SETTLED_BATCHES = 2
"""After which the load of a key that became hot is balanced, at the latest."""
BALANCED = 1.1
"""Rows of the busiest task over the mean, at most, where rows count as balanced."""


def balanced_after(series: Series) -> list[float]:
    """Count, for each change of the load, the batches that were out of balance before all that followed were in it.

    Returns
    -------
    list[float]
        0 where the batch of the change and all others up to the next change were in balance; infinity where the last of
        them was not.
    """
    balanced: dict[int, list[bool]] = {}
    for batch in series.batches:
        if "change" in batch:
            balanced.setdefault(batch["change"], []).append(imbalance(batch) <= BALANCED)
    return [_after_last_false(of) for of in balanced.values()]


def _after_last_false(values: Sequence[bool]) -> float:
    if not values[-1]:
        return math.inf
    return float(max((i + 1 for i, value in enumerate(values) if not value), default=0))


def throughput(batches: Sequence[Batch]) -> float | None:
    """Work that was done over what all tasks could have done in the time of the batches, the whole of each.

    None where work was not measured.
    """
    work = [_figure(batch, "workMs") for batch in batches]
    time = [batch_ms(batch) for batch in batches]
    tasks = [len(batch["rows"]) for batch in batches]
    able = sum(ms * n for ms, n in zip(time, tasks, strict=True) if ms is not None)
    done = [ms for ms in work if ms is not None]
    return sum(done) / able if able and len(done) == len(work) else None


def of_perfect_balance(batch: Batch) -> float | None:
    """Time of a batch at perfect balance without any overhead over the time that it took."""
    return throughput([batch])


def dearest_key(batch: Batch) -> float | None:
    """Work of the dearest key over a task's fair share: above 1 perfect balance is out of reach."""
    work, dearest = _figure(batch, "workMs"), _figure(batch, "dearestKeyMs")
    return dearest * len(batch["rows"]) / work if work and dearest is not None else None


def moved(batch: Batch) -> float | None:
    """Share of the shards that another task runs than in the batch before; None where that is not known."""
    return _figure(batch, "moved")


def changed_imbalance(batch: Batch) -> float | None:
    """Rows of the busiest task over the mean, in batches in which another key became hot."""
    return imbalance(batch) if batch.get("sinceChange") == 0 else None


def latency_ms(batch: Batch) -> float | None:
    """Time from the arrival of a row to the end of its batch, in ms."""
    return _figure(batch, "latencyMs")


def settled_imbalance(batch: Batch) -> float | None:
    """Rows of the busiest task over the mean, from two batches after another key became hot."""
    return imbalance(batch) if batch.get("sinceChange", 0) >= SETTLED_BATCHES else None


def start_ms(batch: Batch) -> float | None:
    """Time from the call that starts a query to the end of its first batch, in ms."""
    return _figure(batch, "start")


def changed_batch_ms(batch: Batch) -> float | None:
    """Whole time of a batch, in ms, if it is the first one with another number of tasks."""
    return batch_ms(batch) if batch.get("sinceChange") == 0 else None


def accesses(batch: Batch) -> float | None:
    """Keys that a batch reads or writes."""
    return _figure(batch, "accesses")


def checked_bytes(batch: Batch) -> float | None:
    """Bytes with a checksum that a batch writes; None where they are gone already."""
    return _figure(batch, "checkedBytes") or None


def call_ns(batch: Batch) -> float | None:
    """Time of one call of a state store, in ns."""
    return _figure(batch, "ns")


def call_ms(batch: Batch) -> float | None:
    """Time of one call, in ms."""
    ns = call_ns(batch)
    return None if ns is None else ns / 1e6


def plan_ms(batch: Batch) -> float | None:
    """Time in which a plan was made, in ms."""
    return _figure(batch, "planMs")


def planned_imbalance(batch: Batch) -> float | None:
    """Largest load over the mean if costs stay what they are."""
    return _figure(batch, "imbalance")


def estimate_error(batch: Batch) -> float | None:
    """How far the load that was estimated for a destination is from the real one, over the mean."""
    return _figure(batch, "error")


def records(batch: Batch) -> float | None:
    """Give the number of records that keys were merged into."""
    return _figure(batch, "records")


def moves(batch: Batch) -> float | None:
    """Give the number of moves of a plan."""
    return _figure(batch, "moves")


def cost_over_published(batch: Batch) -> float | None:
    """State that must move, over that of the published algorithm."""
    return _figure(batch, "cost")


def newcomer(batch: Batch) -> float | None:
    """Share of the rows that an executor had which was not there at first."""
    return _figure(batch, "newcomer")


def processor_share(batch: Batch) -> float | None:
    """Share of a core that a process used."""
    return _figure(batch, "processorShare")


def entry_bytes(batch: Batch) -> float | None:
    """Bytes that an entry of a state store takes beyond its key and its value."""
    return _figure(batch, "bytes")


def _figure(batch: Batch, name: str) -> float | None:
    value = batch.get(name)
    return None if value is None else float(value)
