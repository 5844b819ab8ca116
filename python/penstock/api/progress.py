"""Penstock's report in the progress of a batch; see ``docs/progress.md``."""

from __future__ import annotations

import re
from typing import Any

_NAME = re.compile(r"penstock(?:#(\d{1,9}))?")
_FIELDS = {"mode", "reason"}
"""Fields that every report has. They distinguish it from a user's metric of the same name."""


def report_of(progress: dict[str, Any]) -> dict[str, Any] | None:
    """Find Penstock's report in the progress of a batch.

    The report is the observed metric ``penstock``. If the query has a metric of that name itself, the report is
    ``penstock#N`` with the largest N.

    Parameters
    ----------
    progress
        Progress as parsed from Spark's JSON, on the driver or in a Spark Connect client.

    Returns
    -------
    dict or None
        The report. None if the query has no state, Penstock is not enabled, or no batch ran.
    """
    if "addBatch" not in progress.get("durationMs", {}):
        return None
    metrics = progress.get("observedMetrics") or {}
    named = {int(match[1] or 0): name for name in metrics if (match := _NAME.fullmatch(name))}
    report = decoded(metrics[named[max(named)]]) if named else None
    return report if isinstance(report, dict) and report.keys() >= _FIELDS else None


def decoded(value: Any) -> Any:
    """Convert rows to dicts by field name. Spark Connect sends each row as its values and their schema."""
    if isinstance(value, list):
        return [decoded(element) for element in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"values", "schema"}:
        names = [field["name"] for field in value["schema"]["fields"]]
        return dict(zip(names, map(decoded, value["values"]), strict=True))
    return {name: decoded(field) for name, field in value.items()}
