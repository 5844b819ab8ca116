"""Add up test reports, and print what `.ci/run` ends with.

usage: count_tests.py NAME=PATTERN...

Prints a line for each test that failed, a line ``NAME: N passed, N failed, N skipped`` for each set of reports, and the
sum as the last line.
PATTERN is a glob from the repository's root; reports are JUnit's XML, or JSON with these counts. Exit status 1 where a
test failed, or a set has no test at all.
"""

import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple


class Count(NamedTuple):
    """Tests by outcome."""

    passed: int
    failed: int
    skipped: int

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def failures(report: Path) -> list[str]:
    """Name the tests of a report that failed, and why: the first line of what each said."""
    if report.suffix == ".json":
        return []
    named = []
    for case in ET.parse(report).iter("testcase"):  # noqa: S314, our own reports
        for found in [*case.iterfind("failure"), *case.iterfind("error")]:
            said = (found.get("message") or found.text or "").strip().splitlines()
            named.append(f"{case.get('classname')}: {case.get('name')}: {said[0][:500] if said else ''}")
    return named


def count(report: Path) -> Count:
    """Count the tests of one report; errors are failures."""
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
