"""The reports of a benchmark: JSON, tables and pages."""

import json

from measured_series import batch, series
from penstock.benchmarks import report
from penstock.benchmarks.targets import Target


def result(**changes):
    measured = [series([batch(10), batch(20)], manager="local", side="hdfs-2", operator="join")]
    fields = {
        "name": "overhead",
        "spark": "4.2.0",
        "commit": "abc",
        "date": "2026-01-31",
        "machine": "2 cores",
        "command": "penstock bench overhead",
    }
    checked = [Target("a", 1.0, 1.1), Target("b, at least", None, 5.0, at_least=True)]
    return report.Result(**fields, cases=report.cases("overhead", measured), targets=checked, **changes)


def test_the_json_has_the_published_form():
    written = json.loads(json.dumps(report.to_json(result())))
    assert list(written) == ["name", "spark", "commit", "date", "machine", "command", "cases", "targets"]
    assert written["cases"][0] == {
        "case": "join, local file manager, hdfs-2: batch",
        "unit": "ms",
        "median": 15.0,
        "p10": 11.0,
        "p90": 19.0,
        "p99": 19.9,
        "n": 2,
    }
    assert written["targets"] == [
        {"name": "a", "value": 1.0, "target": 1.1, "met": True},
        {"name": "b, at least", "value": None, "target": 5.0, "met": False},
    ]
    assert not result().met


def test_tables_show_every_case_and_target():
    for text in (report.to_text(result()), report.to_markdown(result())):
        assert "join, local file manager, hdfs-2: addBatch" in text
        assert "not measured" in text
        assert "at least 5" in text


def test_a_page_names_commit_and_date():
    assert "commit abc, 2026-01-31" in report.to_markdown(result())
