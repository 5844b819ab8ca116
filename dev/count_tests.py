"""Add up test reports, and print the last lines of `.ci/run`.

usage: count_tests.py NAME=PATTERN...

Prints a line for each test that failed, a line ``NAME: N passed, N failed, N skipped`` for each set of reports, and the
sum as the last line.
PATTERN is a glob relative to the root of the repository. Reports are JUnit XML, or JSON with these counts. The exit
status is 1 if a test failed, or if a set has no passed test.
"""

import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple


class Count(NamedTuple):
    """Number of tests by outcome."""

    passed: int
    failed: int
    skipped: int

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def failures(report: Path) -> list[str]:
    """Name the failed tests of a report, each with the first line of its message."""
    if report.suffix == ".json":
        return []
    named = []
    for case in ET.parse(report).iter("testcase"):  # noqa: S314, our own reports
        for found in [*case.iterfind("failure"), *case.iterfind("error")]:
            message = (found.get("message") or found.text or "").strip().splitlines()
            named.append(f"{case.get('classname')}: {case.get('name')}: {message[0][:500] if message else ''}")
    return named


def count(report: Path) -> Count:
    """Count the tests of one report. Errors count as failures."""
    if report.suffix == ".json":
        counts = json.loads(report.read_text())
        return Count(counts["passed"], counts["failed"], counts["skipped"])
    cases = list(ET.parse(report).iter("testcase"))  # noqa: S314, our own reports
    failed = sum(c.find("failure") is not None or c.find("error") is not None for c in cases)
    skipped = sum(c.find("skipped") is not None for c in cases)
    return Count(len(cases) - failed - skipped, failed, skipped)


def add(counts: list[Count]) -> Count:
    """Sum counts."""
    return Count(*(sum(c[i] for c in counts) for i in range(3)))


def main(arguments: list[str]) -> int:
    """Print the counts."""
    sums, lines = [], []
    for argument in arguments:
        name, _, pattern = argument.partition("=")
        reports = sorted(Path.cwd().glob(pattern))
        for report in reports:
            for line in failures(report):
                print(f"failed, {name}: {line}")
        sums.append(add([count(report) for report in reports]))
        lines.append(f"{name}: {sums[-1]}")
    print(*lines, add(sums), sep="\n")
    return 1 if any(s.failed or not s.passed for s in sums) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
