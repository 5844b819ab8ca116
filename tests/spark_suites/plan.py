"""The two tables that say what is run and what may fail: suites.tsv and exclusions.tsv."""

from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

RACES = "races: "
"""Prefix of the reason for a test whose outcome depends on time. Such a test may pass."""


class TableError(Exception):
    """A line of a table is invalid. The message names the file, the line and what is expected."""


class Mode(Enum):
    """How a suite is made to use Penstock's state store."""

    PLUGIN = "plugin"
    """The plugin sets the provider, because the suite names none."""

    LITERALS = "literals"
    """Class literals of the RocksDB provider are replaced by ours, because the suite uses them in settings."""

    TYPES = "types"
    """Every use of that type is replaced by ours, because the suite also creates providers itself."""

    STANDALONE = "standalone"
    """As TYPES, with the provider that needs no query plan, because the suite opens stores itself."""


@dataclass(frozen=True)
class Suite:
    """A line of suites.tsv.

    Attributes
    ----------
    name
        Last part of the class name.
    mode
        How the suite is made to use Penstock's state store.
    ci
        Whether CI runs the suite.
    tests, passed, seconds
        Results of the last recorded run, or None if the suite was never recorded.
    """

    name: str
    mode: Mode
    ci: bool
    tests: int | None = None
    passed: int | None = None
    seconds: int | None = None

    def line(self) -> str:
        """The suite as a line of the table."""
        numbers = ["" if n is None else str(n) for n in (self.tests, self.passed, self.seconds)]
        return "\t".join([self.name, self.mode.value, "ci" if self.ci else "all", *numbers])


def read_suites(path: Path) -> list[Suite]:
    """Reads suites.tsv: suite, mode, part (ci, all), tests, passed, seconds. Lines that begin with # are headings."""
    suites = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != 6 or fields[1] not in {m.value for m in Mode} or fields[2] not in {"ci", "all"}:
            modes = ", ".join(m.value for m in Mode)
            raise TableError(
                f"{path.name}:{number}: expected suite, mode ({modes}), part (ci, all) and 3 numbers: {line}"
            )
        tests, passed, seconds = (int(f) if f else None for f in fields[3:])
        suites.append(Suite(fields[0], Mode(fields[1]), fields[2] == "ci", tests, passed, seconds))
    return suites


def record(path: Path, measured: dict[str, tuple[int, int, int]]) -> None:
    """Writes (tests, passed, seconds) of the suites that ran into suites.tsv. Other lines are not changed."""
    suites = {suite.name: suite for suite in read_suites(path)}
    lines = []
    for line in path.read_text().splitlines():
        name = line.split("\t")[0]
        if name in suites and name in measured:
            tests, passed, seconds = measured[name]
            line = replace(suites[name], tests=tests, passed=passed, seconds=seconds).line()
        lines.append(line)
    path.write_text("\n".join(lines) + "\n")


@dataclass(frozen=True)
class Exclusions:
    """Tests that cannot pass with the plugin on, each with its reason. They run, but may fail.

    Attributes
    ----------
    reasons
        Reasons by "Suite#test name", or by "*#test name" if several suites share a test.
    """

    reasons: dict[str, str]

    def reason(self, suite: str, test: str) -> str | None:
        """Returns why this test may fail, or None if it may not fail."""
        return self.reasons.get(f"{suite}#{test}", self.reasons.get(f"*#{test}"))


def read_exclusions(path: Path) -> Exclusions:
    """Reads exclusions.tsv: "Suite#test name", a tab, the reason. Lines that begin with # are headings."""
    reasons: dict[str, str] = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, tab, reason = line.partition("\t")
        if "#" not in name or not tab or not reason.strip():
            raise TableError(f"{path.name}:{number}: expected Suite#test<TAB>reason: {line}")
        if name in reasons:
            raise TableError(f"{path.name}:{number}: excluded twice: {name}")
        reasons[name] = reason.strip()
    return Exclusions(reasons)
