"""The report in a batch's progress, as the different writers of Spark encode it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.api.progress import decoded, report_of

REPORT = {"mode": "on", "reason": None, "regions": [{"region": 0, "heavyKeys": [{"key": "a"}, {"key": "b"}]}]}


def progress(**metrics: Any) -> dict[str, Any]:
    return {"durationMs": {"addBatch": 3}, "observedMetrics": metrics}


def encoded(value: Any) -> Any:
    """Encode rows like Spark Connect and event logs do."""
    if isinstance(value, dict):
        fields = [{"name": name, "type": "any", "nullable": True, "metadata": {}} for name in value]
        return {"values": list(map(encoded, value.values())), "schema": {"type": "struct", "fields": fields}}
    return list(map(encoded, value)) if isinstance(value, list) else value


ROWS = st.recursive(
    st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


@given(ROWS)
def test_rows_are_decoded(row: Any) -> None:
    assert decoded(json.loads(json.dumps(encoded(row)))) == row


def test_a_report_is_the_same_with_and_without_connect() -> None:
    assert report_of(progress(penstock=REPORT)) == REPORT
    assert report_of(progress(penstock=encoded(REPORT))) == REPORT


@pytest.mark.parametrize(
    "names", [["penstock"], ["penstock", "penstock#1"], ["penstock#9"], ["penstock#2", "penstock#11"]]
)
def test_the_report_is_the_metric_with_the_highest_number(names: list[str]) -> None:
    users = {name: {"mode": "mine", "reason": "mine"} for name in names[:-1]}
    others = {"penstock#": {"mode": 1, "reason": 1}, "xpenstock": 1, "penstock#1x": 2}
    assert report_of(progress(**users, **{names[-1]: REPORT}, **others)) == REPORT


@pytest.mark.parametrize(
    "without_report",
    [
        progress(),
        progress(penstock={"mine": 5}),
        progress(penstock=5),
        {"durationMs": {}, "observedMetrics": {"penstock": REPORT}},
        {"durationMs": {"addBatch": 1}, "observedMetrics": None},
        {},
    ],
)
def test_progress_without_a_report_gives_none(without_report: dict[str, Any]) -> None:
    assert report_of(without_report) is None
