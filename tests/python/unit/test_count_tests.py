"""Counts of tests in continuous integration, and the exit status of a run."""

import json
import re

import count_tests
import pytest

XML = """<testsuites><testsuite><testcase name="a"/>
<testcase classname="S" name="b"><failure message="1 was not 2&#10;at S.scala"/></testcase>
<testcase classname="S" name="c"><error>gone</error></testcase>
<testcase name="d"><skipped/></testcase></testsuite></testsuites>"""


@pytest.fixture
def reports(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.xml").write_text(XML)
    (tmp_path / "good.xml").write_text('<testsuite><testcase name="a"/></testsuite>')
    (tmp_path / "suites.json").write_text(json.dumps({"passed": 5, "failed": 0, "skipped": 2, "failures": {}}))


@pytest.mark.parametrize(
    ("patterns", "status", "last"),
    [
        (["good=good.xml"], 0, "1 passed, 0 failed, 0 skipped"),
        (["all=*.xml", "suites=suites.json"], 1, "7 passed, 2 failed, 3 skipped"),
        (["good=good.xml", "none=nothing/*.xml"], 1, "1 passed, 0 failed, 0 skipped"),
    ],
)
def test_counts_and_status(reports, capsys, patterns, status, last):
    assert count_tests.main(patterns) == status
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == last
    named = [line for line in lines if line.startswith("failed, ")]
    assert named == (
        ["failed, all: S: b: 1 was not 2", "failed, all: S: c: gone"] if patterns[0] == "all=*.xml" else []
    )
    lines = lines[len(named) :]
    assert len(lines) == len(patterns) + 1
    assert all(re.fullmatch(r"\w+: \d+ passed, \d+ failed, \d+ skipped", line) for line in lines[:-1])
