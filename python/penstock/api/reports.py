"""`penstock.status` and `penstock.decisions`: what Penstock did for a query that runs here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.query import StreamingQuery

# pandas is imported where it is used: the command line works without it.
# ruff: noqa: PLC0415


def status(query: StreamingQuery) -> dict[str, Any] | None:
    """Tell what Penstock did in the newest batch of a query that has state.

    Parameters
    ----------
    query
        What ``start()`` returned.

    Returns
    -------
    dict or None
        Number of the ``batch``, and the fields of ``docs/progress.md``: mode, epoch, shards, regions with tasks,
        balance, heavy keys and decision, stores, state; ``reason`` where Penstock leaves the query alone. None before
        the first batch.
    """
    batches = _batches(query)
    return {"batch": batches[-1]["batchId"], **batches[-1]["observedMetrics"]["penstock"]} if batches else None


def decisions(query: StreamingQuery) -> pd.DataFrame:
    """Tabulate what was decided for a query, batch by batch.

    Parameters
    ----------
    query
        What ``start()`` returned.

    Returns
    -------
    pandas.DataFrame
        A row per batch and region, oldest first, of the batches that Spark keeps the progress of
        (``spark.sql.streaming.numRecentProgressUpdates``, 100): ``batch``, ``timestamp``, ``batchMs``, ``mode``,
        ``epoch``, the fields of a region (``docs/progress.md``) with the heaviest key in place of the list, as
        ``heaviestKey`` and ``heaviestKeyShare``.
    """
    import pandas as pd

    rows = [
        {**_of_batch(progress), **_of_region(region)}
        for progress in _batches(query)
        for region in progress["observedMetrics"]["penstock"].get("regions") or []
    ]
    return pd.DataFrame(rows)


def _batches(query: StreamingQuery) -> list[dict[str, Any]]:
    # A query that waits reports progress without a batch now and then.
    every = (json.loads(progress.json) for progress in query.recentProgress)
    return [p for p in every if "penstock" in p.get("observedMetrics", {}) and "addBatch" in p.get("durationMs", {})]


def _of_batch(progress: dict[str, Any]) -> dict[str, Any]:
    report = progress["observedMetrics"]["penstock"]
    return {
        "batch": progress["batchId"],
        "timestamp": progress["timestamp"],
        "batchMs": progress["durationMs"].get("triggerExecution"),
        "mode": report["mode"],
        "epoch": report.get("epoch"),
    }


def _of_region(region: dict[str, Any]) -> dict[str, Any]:
    heavy = (region.get("heavyKeys") or [{}])[0]
    share = heavy.get("rowsShare") if heavy.get("busyShare") is None else heavy["busyShare"]
    others = {name: value for name, value in region.items() if name != "heavyKeys"}
    return {**others, "heaviestKey": heavy.get("key"), "heaviestKeyShare": share}
