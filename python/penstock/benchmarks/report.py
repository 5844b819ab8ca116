"""Format the result of a benchmark as JSON, as text for a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from penstock.benchmarks.samples import Series, Summary, summarise
from penstock.benchmarks.targets import MEASURES, Target


@dataclass(frozen=True)
class Case:
    """A line of the result: what was measured, its unit and its statistics."""

    name: str
    unit: str
    summary: Summary


@dataclass(frozen=True)
class Result:
    """The published result of a benchmark run.

    Parameters
    ----------
    name
        Title of the benchmark.
    spark
        Version of Spark. None if the benchmark runs without Spark.
    commit
        Commit that was measured.
    date
        Date of the run.
    machine
        Description of the machine that the benchmark ran on.
    command
        Command that repeats the run.
    cases
        Measured values.
    targets
        Targets and whether they are met.
    """

    name: str
    spark: str | None
    commit: str
    date: str
    machine: str
    command: str
    cases: Sequence[Case]
    targets: Sequence[Target]

    @property
    def met(self) -> bool:
        """Whether every target is met."""
        return all(t.met for t in self.targets)


def cases(bench: str, series: Sequence[Series]) -> list[Case]:
    """Return the cases of a benchmark: one for each measure of each side."""
    found = []
    for name, unit, measure in MEASURES[bench]:
        for s in series:
            if values := s.values(measure):
                found.append(Case(f"{_labels(s)}: {name}", unit, summarise(values)))
    return found


def _labels(series: Series) -> str:
    words = {
        "operator": "{}",
        "plan": "{}",
        "call": "{}",
        "sidecars": "sidecars {}",
        "keys": "{} keys",
        "zipf": "Zipf {}",
        "spread": "costs up to {} x",
        "omega": "{} shuffles a minute",
        "rate": "{} rows/s",
        "hot": "hot keys {}",
        "cores": "{} cores",
        "mapTasks": "{} map tasks",
        "tasks": "{} tasks",
        "manager": "{} file manager",
        "side": "{}",
    }
    return ", ".join(text.format(series.labels[key]) for key, text in words.items() if key in series.labels)


def to_json(result: Result) -> dict[str, Any]:
    """Return the JSON object that `penstock bench --json` writes."""
    return {
        "name": result.name,
        "spark": result.spark,
        "commit": result.commit,
        "date": result.date,
        "machine": result.machine,
        "command": result.command,
        "cases": [{"case": c.name, "unit": c.unit, **_rounded(c.summary)} for c in result.cases],
        "targets": [
            {
                "name": t.name,
                "value": None if t.value is None else round(t.value, 4),
                "target": t.target,
                "met": t.met,
            }
            for t in result.targets
        ],
    }


def _rounded(summary: Summary) -> dict[str, float]:
    return {k: v if k == "n" else round(v, 4) for k, v in asdict(summary).items()}


def rows(result: Result) -> tuple[list[list[str]], list[list[str]]]:
    """Return the tables of cases and of targets, each with its header as first row."""
    measured = [["case", "unit", "median", "p10", "p90", "p99", "n"]]
    for c in result.cases:
        s = c.summary
        measured.append([c.name, c.unit, *(_number(v) for v in (s.median, s.p10, s.p90, s.p99)), str(s.n)])
    checked = [["target", "reached", "must reach", "met"]]
    for t in result.targets:
        bound = f"{'at least' if t.at_least else 'at most'} {t.target:g}"
        reached = "not measured" if t.value is None else f"{t.value:.3f}"
        checked.append([_without_bound(t.name), reached, bound, "yes" if t.met else "NO"])
    return measured, checked


_WITH_DECIMALS_BELOW = 10


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= _WITH_DECIMALS_BELOW else f"{value:.3f}"


def _without_bound(name: str) -> str:
    return name.removesuffix(", at most").removesuffix(", at least")


def to_text(result: Result) -> str:
    """Return the result as text for a terminal."""
    return "\n\n".join([f"{result.name}, {_spark(result)}\n{result.machine}", *map(_aligned, rows(result))])


def _spark(result: Result) -> str:
    return f"Spark {result.spark}" if result.spark else "without Spark"


def _aligned(table: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = []
    for row in table:
        first = row[0].ljust(widths[0])
        lines.append("  ".join([first, *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]))
    return "\n".join(lines)


def to_markdown(result: Result) -> str:
    """Return the Markdown page that is published beside the JSON."""
    measured = f"{_spark(result)}; commit {result.commit}, {result.date}; {result.machine}"
    head = f"# {result.name}\n\n{measured}\n\n    {result.command}\n"
    return "\n".join([head, *(_markdown_table(t) for t in reversed(rows(result)))])


def _markdown_table(table: list[list[str]]) -> str:
    head, *body = table
    line = "|".join(["---", *["---:"] * (len(head) - 1)])
    return "\n".join([f"| {' | '.join(head)} |", f"|{line}|", *(f"| {' | '.join(r)} |" for r in body)]) + "\n"
