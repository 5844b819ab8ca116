"""`penstock.status` and `penstock.decisions`: Penstock's reports on a query."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Any

from penstock.api.progress import report_of
from penstock.api.queries import IN_A_SERVER, IN_AN_APPLICATION, has_plugin, is_remote

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.query import StreamingQuery

# pandas is imported where it is used: the command line works without it.
# ruff: noqa: PLC0415

COLUMNS = ("batch", "timestamp", "batchMs", "mode", "routingVersion")
"""Columns of a batch in the table of `decisions`. The columns of a region follow them."""


def status(query: StreamingQuery) -> dict[str, Any]:
    """Return Penstock's report on the newest batch of a query.

    Parameters
    ----------
    query
        The query that ``start()`` returned, in this process or in a Spark Connect client.

    Returns
    -------
    dict
        ``batch``, the number of the batch; ``exception``, the error that ended the query, or None; and the fields of
        ``docs/progress.md``: mode, routingVersion, shards, stores, state, and the regions with their tasks, imbalance,
        heavy keys, pinned keys and decision. If Penstock leaves the query alone or there is no report yet, ``reason``
        says why. If no batch has ended, ``batch`` is None.

    Raises
    ------
    PenstockError
        ``PENSTOCK_NOT_A_QUERY`` if ``query`` is not a StreamingQuery.
    """
    remote = is_remote(query, "status")
    batches = _batches(query)
    exception = _exception(query)
    for progress in reversed(batches):
        report = report_of(progress)
        if report is not None:
            return {"batch": progress["batchId"], "exception": exception, **report}
    newest = batches[-1]["batchId"] if batches else None
    return {"batch": newest, "exception": exception, "reason": _why_no_report(query, remote, batches, exception)}


def decisions(query: StreamingQuery) -> pd.DataFrame:
    """Return the decisions for a query as a table, with a row for each batch and region.

    Parameters
    ----------
    query
        The query that ``start()`` returned, in this process or in a Spark Connect client.

    Returns
    -------
    pandas.DataFrame
        Rows with the oldest batch first, for the batches whose progress Spark keeps
        (``spark.sql.streaming.numRecentProgressUpdates``, by default 100). The columns are ``batch``, ``timestamp``,
        ``batchMs``, ``mode``, ``routingVersion`` and the fields of a region (``docs/progress.md``). Instead of the list
        of heavy keys there are ``heaviestKey`` and ``heaviestKeyShare``; pinned keys are listed by name. If the table
        is empty, ``attrs["reason"]`` and a warning say why.

    Raises
    ------
    PenstockError
        ``PENSTOCK_NOT_A_QUERY`` if ``query`` is not a StreamingQuery.
    """
    import pandas as pd

    remote = is_remote(query, "decisions")
    batches = _batches(query)
    reports = [(progress, report) for progress in batches if (report := report_of(progress)) is not None]
    rows = [
        {**_of_batch(progress, report), **_of_region(region)}
        for progress, report in reports
        for region in report.get("regions") or []
    ]
    if rows:
        return pd.DataFrame(rows)
    empty = pd.DataFrame(columns=list(COLUMNS))
    if reports:
        empty.attrs["reason"] = f"Penstock leaves the query alone: {reports[-1][1]['reason']}"
    else:
        empty.attrs["reason"] = _why_no_report(query, remote, batches, _exception(query))
    warnings.warn(f"No decisions: {empty.attrs['reason']}", stacklevel=2)
    return empty


def _batches(query: StreamingQuery) -> list[dict[str, Any]]:
    # A query without new data also reports progress, without a batch.
    every = (json.loads(progress.json) for progress in query.recentProgress)
    return [progress for progress in every if "addBatch" in progress.get("durationMs", {})]


def _exception(query: StreamingQuery) -> str | None:
    found = query.exception()
    return None if found is None else str(found).partition("\n")[0]


def _why_no_report(query: StreamingQuery, remote: bool, batches: list[dict[str, Any]], exception: str | None) -> str:
    if batches and not any(progress.get("stateOperators") for progress in batches):
        return "the query has no state, so there is nothing for Penstock to do"
    if not has_plugin(query, remote):
        where, remedy = ("this server", IN_A_SERVER) if remote else ("this application", IN_AN_APPLICATION)
        return f"Penstock is not enabled in {where}. {remedy}"
    if exception is not None:
        return f"the query failed before its first batch had ended: {exception}"
    if batches:
        return "Penstock does not report on its batches, as in Real-Time Mode and continuous processing"
    if not query.isActive:
        return "the query was stopped before its first batch had ended"
    return f"no batch has ended yet: {query.status['message']}"


def _of_batch(progress: dict[str, Any], report: dict[str, Any]) -> dict[str, Any]:
    return {
        "batch": progress["batchId"],
        "timestamp": progress["timestamp"],
        "batchMs": progress["durationMs"].get("triggerExecution"),
        "mode": report["mode"],
        "routingVersion": report.get("routingVersion"),
    }


def _of_region(region: dict[str, Any]) -> dict[str, Any]:
    heavy = (region.get("heavyKeys") or [{}])[0]
    share = heavy.get("rowsShare") if heavy.get("busyShare") is None else heavy["busyShare"]
    others = {name: value for name, value in region.items() if name != "heavyKeys"}
    pinned = [key["key"] for key in region.get("pinnedKeys") or []]
    return {**others, "pinnedKeys": pinned, "heaviestKey": heavy.get("key"), "heaviestKeyShare": share}
