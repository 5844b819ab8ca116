"""What Penstock told of a batch, among what Spark tells of it: ``docs/progress.md``."""

from __future__ import annotations

import re
from typing import Any

_NAME = re.compile(r"penstock(?:#(\d{1,9}))?")
_FIELDS = {"mode", "reason"}
"""Of every report: a metric of the user may have the report's name in a query that has none."""


def report_of(progress: dict[str, Any]) -> dict[str, Any] | None:
    """Find the report in the progress of a batch.

    Where the query has a metric of its own named ``penstock``, the report has a number behind that name: the highest.

    Parameters
    ----------
    progress
        As Spark writes it as JSON, on the driver or to a client of Spark Connect.

    Returns
    -------
    dict or None
        None where there is none: the query has no state, Penstock is not there, or no batch ran.
    """
    if "addBatch" not in progress.get("durationMs", {}):
        return None
    metrics = progress.get("observedMetrics") or {}
    named = {int(match[1] or 0): name for name in metrics if (match := _NAME.fullmatch(name))}
    report = decoded(metrics[named[max(named)]]) if named else None
    return report if isinstance(report, dict) and report.keys() >= _FIELDS else None


def decoded(told: Any) -> Any:
    """Make fields by name of rows that come as values and their schema, as they do through Spark Connect."""
    if isinstance(told, list):
        return [decoded(element) for element in told]
    if not isinstance(told, dict):
        return told
    if told.keys() == {"values", "schema"}:
        names = [field["name"] for field in told["schema"]["fields"]]
        return dict(zip(names, map(decoded, told["values"]), strict=True))
    return {name: decoded(value) for name, value in told.items()}
