"""Read the samples that the benchmark programs wrote, and compute statistics."""

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
    """One side of a comparison: its labels, and its measured batches in order."""

    labels: Mapping[str, str]
    batches: Sequence[Batch]

    def values(self, measure: Measure) -> list[float]:
        """Return the measure of every batch, without batches that do not have it."""
        return [v for v in map(measure, self.batches) if v is not None]


@dataclass(frozen=True)
class Summary:
    """Median and quantiles of ``n`` values."""

    median: float
    p10: float
    p90: float
    p99: float
    n: int


def read(lines: Iterable[str]) -> list[Series]:
    """Parse the samples of a benchmark program, a JSON object per line."""
    parsed = (json.loads(line) for line in lines if line.strip())
    return [Series(p["case"], p["batches"]) for p in parsed]


def find(series: Sequence[Series], **labels: str) -> Series | None:
    """Return the series with these labels. None if it was not measured or has no batches."""
    found = [s for s in series if s.batches and all(s.labels.get(k) == v for k, v in labels.items())]
    return found[0] if found else None


def quantile(values: Sequence[float], q: float) -> float:
    """Estimate a quantile by linear interpolation between the two nearest values.

    Parameters
    ----------
    values
        Values in any order, at least one.
    q
        Quantile, from 0 (the smallest value) to 1 (the largest value).
    """
    ordered = sorted(values)
    position = q * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def summarise(values: Sequence[float]) -> Summary:
    """Return the statistics of one or more values."""
    return Summary(
        quantile(values, 0.5), quantile(values, 0.1), quantile(values, 0.9), quantile(values, 0.99), len(values)
    )


def batch_ms(batch: Batch) -> float | None:
    """Total time of a batch in ms, from Spark's decision to run it to its commit. None if the sample is not a batch."""
    return float(batch["ms"]["triggerExecution"]) if "ms" in batch else None


def add_batch_ms(batch: Batch) -> float:
    """Time of ``addBatch`` in ms: physical planning and all stages."""
    return float(batch["ms"]["addBatch"])


def stage_ms(batch: Batch) -> float:
    """Time of the stateful stage in ms, from its submission to its end."""
    return float(batch["stage"])


def processor_ms(batch: Batch) -> float:
    """Processor time of the Spark process in the batch in ms, over all cores and without Python workers."""
    return float(batch["processor"])


def imbalance(batch: Batch) -> float:
    """Rows of the busiest task of the stateful stage over the mean of its tasks."""
    rows = batch["rows"]
    return float(max(rows) * len(rows) / sum(rows))


SETTLED_BATCHES = 2
"""Number of batches after which a key that became hot must be balanced."""
BALANCED = 1.1
"""Largest imbalance of rows that counts as balanced."""


def balanced_after(series: Series) -> list[float]:
    """Count for each change of the load the batches until the load was balanced and remained so.

    Returns
    -------
    list[float]
        Number of batches for each change. 0 if all batches up to the next change were balanced, and infinity if the
        last of them was not.
    """
    balanced: dict[int, list[bool]] = {}
    for batch in series.batches:
        if "change" in batch:
            balanced.setdefault(batch["change"], []).append(imbalance(batch) <= BALANCED)
    return [_after_last_false(batches) for batches in balanced.values()]


def _after_last_false(values: Sequence[bool]) -> float:
    if not values[-1]:
        return math.inf
    return float(max((i + 1 for i, value in enumerate(values) if not value), default=0))


def throughput(batches: Sequence[Batch]) -> float | None:
    """Return the work that was done over the work that all tasks could have done in the total time of the batches.

    None if work was not measured.
    """
    work = [_figure(batch, "workMs") for batch in batches]
    time = [batch_ms(batch) for batch in batches]
    tasks = [len(batch["rows"]) for batch in batches]
    possible = sum(ms * n for ms, n in zip(time, tasks, strict=True) if ms is not None)
    done = [ms for ms in work if ms is not None]
    return sum(done) / possible if possible and len(done) == len(work) else None


def of_perfect_balance(batch: Batch) -> float | None:
    """Time that a batch would take with perfect balance and without any overhead, over its actual time."""
    return throughput([batch])


def dearest_key(batch: Batch) -> float | None:
    """Work of the most expensive key over the mean work of a task. Above 1, perfect balance is impossible."""
    work, dearest = _figure(batch, "workMs"), _figure(batch, "dearestKeyMs")
    return dearest * len(batch["rows"]) / work if work and dearest is not None else None


def moved(batch: Batch) -> float | None:
    """Share of the shards that changed task since the batch before. None if it is unknown."""
    return _figure(batch, "moved")


def changed_imbalance(batch: Batch) -> float | None:
    """Imbalance of rows in batches in which another key became hot."""
    return imbalance(batch) if batch.get("sinceChange") == 0 else None


def latency_ms(batch: Batch) -> float | None:
    """Time from the arrival of a row to the end of its batch in ms."""
    return _figure(batch, "latencyMs")


def settled_imbalance(batch: Batch) -> float | None:
    """Imbalance of rows in batches at least two batches after another key became hot."""
    return imbalance(batch) if batch.get("sinceChange", 0) >= SETTLED_BATCHES else None


def start_ms(batch: Batch) -> float | None:
    """Time from the call that starts a query to the end of its first batch in ms."""
    return _figure(batch, "start")


def changed_batch_ms(batch: Batch) -> float | None:
    """Total time of a batch in ms, if it is the first one with another number of tasks."""
    return batch_ms(batch) if batch.get("sinceChange") == 0 else None


def accesses(batch: Batch) -> float | None:
    """Return the number of keys that a batch reads or writes."""
    return _figure(batch, "accesses")


def checked_bytes(batch: Batch) -> float | None:
    """Return the number of bytes with a checksum that a batch writes. None if the files are already deleted."""
    return _figure(batch, "checkedBytes") or None


def call_ns(batch: Batch) -> float | None:
    """Time of a call in ns."""
    return _figure(batch, "ns")


def call_ms(batch: Batch) -> float | None:
    """Time of a call in ms."""
    ns = call_ns(batch)
    return None if ns is None else ns / 1e6


def plan_ms(batch: Batch) -> float | None:
    """Time of planning in ms."""
    return _figure(batch, "planMs")


def planned_imbalance(batch: Batch) -> float | None:
    """Largest load over the mean after a plan, if costs do not change."""
    return _figure(batch, "imbalance")


def estimate_error(batch: Batch) -> float | None:
    """Largest difference between estimated and real load of a destination, over the mean load."""
    return _figure(batch, "error")


def records(batch: Batch) -> float | None:
    """Return the number of records that keys were merged into."""
    return _figure(batch, "records")


def moves(batch: Batch) -> float | None:
    """Return the number of moves of a plan."""
    return _figure(batch, "moves")


def cost_over_published(batch: Batch) -> float | None:
    """State that a plan moves over the state that the published algorithm moves."""
    return _figure(batch, "cost")


def newcomer(batch: Batch) -> float | None:
    """Share of the rows that were processed by the executor that joined later."""
    return _figure(batch, "newcomer")


def processor_share(batch: Batch) -> float | None:
    """Share of a core that a process used."""
    return _figure(batch, "processorShare")


def entry_bytes(batch: Batch) -> float | None:
    """Bytes of an entry of a state store without its key and value."""
    return _figure(batch, "bytes")


def _figure(batch: Batch, name: str) -> float | None:
    value = batch.get(name)
    return None if value is None else float(value)
