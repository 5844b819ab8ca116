"""Run a stateful query on real flights, under Penstock and under plain Spark, and compare.

Prints for every batch its input rows, the tasks of the stateful stage, how many rows the busiest of them had over the
mean, and milliseconds. At the end it compares every row of every batch's answer; exit status 1 where one differs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.api.errors import PenstockError
from penstock.workloads import flights
from penstock.workloads.flights import Batch

if TYPE_CHECKING:
    from penstock.charts.chart import Chart


@dataclass(frozen=True)
class Variant:
    """One way to run the query."""

    name: str
    title: str
    options: tuple[str, ...]


def variants(cores: int) -> tuple[Variant, ...]:
    """Penstock first, then plain Spark with its default number of partitions, and with one per core."""
    return (
        Variant("penstock", "Penstock, 256 shards", ("--penstock",)),
        Variant("default", "plain Spark, 200 partitions (its default)", ()),
        Variant("cores", f"plain Spark, {cores} partitions", ("--partitions", str(cores))),
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--data", type=Path, default=Path("data/flights.parquet"), help="default: %(default)s")
    parser.add_argument("--batches", type=int, default=6, help="default: %(default)s")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1, help="default: all, here %(default)s")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every batch of every run here")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write one page with the runs over time here")


def run(arguments: argparse.Namespace) -> int:
    """Run all variants, one after the other, and compare."""
    if not arguments.data.is_file():
        raise PenstockError(
            "PENSTOCK_NO_DATA",
            f"{arguments.data} does not exist. Run this in a checkout of the project, or name the file with --data.",
        )
    if arguments.html:
        # Not after all the work.
        from penstock.charts import html  # noqa: PLC0415
    with tempfile.TemporaryDirectory(prefix="penstock-demo-") as folder:
        work = Path(folder)
        flights.split(arguments.data, work / "source", arguments.batches)
        compared = variants(arguments.cores)
        measured: dict[str, list[Batch]] = {}
        for variant in compared:
            print(f"\n{variant.title}", flush=True)
            measured[variant.title] = measure(variant, work, arguments.cores)
            print_table(measured[variant.title])
        verdict, equal = judge(work, compared)
    print(f"\n{verdict}")
    if arguments.json:
        runs = {title: [asdict(batch) for batch in batches] for title, batches in measured.items()}
        arguments.json.write_text(json.dumps({"equal": equal, "verdict": verdict, "runs": runs}, indent=1) + "\n")
    if arguments.html:
        notes = ["Sessions of departures by airport, two months of US flights.", verdict]
        header, rows = ("run", "batches", "median ms", "longest ms", "busiest over mean"), summary(measured)
        arguments.html.write_text(html.page("Penstock beside plain Spark", notes, header, rows, charts(measured)))
    return 0 if equal else 1


def measure(variant: Variant, work: Path, cores: int) -> list[Batch]:
    """Run a variant in a process of its own: a session cannot change its plugins."""
    result = work / f"{variant.name}.json"
    command = [sys.executable, "-m", "penstock.workloads.flights", "--source", str(work / "source")]
    command += ["--json", str(result), "--work", str(work / variant.name), "--cores", str(cores), *variant.options]
    completed = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if completed.returncode != 0:
        raise PenstockError("PENSTOCK_DEMO_FAILED", f"{variant.title} failed:\n{completed.stdout}{completed.stderr}")
    return [Batch(**b) for b in json.loads(result.read_text())]


def print_table(batches: list[Batch]) -> None:
    """Print the batches, and the median of all but the first, which warms up."""
    print(f"{'batch':>7}{'rows':>10}{'tasks':>7}{'busiest/mean':>14}{'ms':>8}")
    for b in batches:
        print(f"{b.batch:>7}{b.rows:>10,}{b.tasks:>7}{b.busiest_over_mean:>14.3f}{b.ms:>8,}")
    ms, balance = (
        statistics.median(v) for v in zip(*((b.ms, b.busiest_over_mean) for b in warm(batches)), strict=True)
    )
    print(f" median{'':>17}{balance:>14.3f}{ms:>8,.0f}", flush=True)


def warm(batches: list[Batch]) -> list[Batch]:
    """Give all but the first, which warms up."""
    return batches[1:] or batches


def summary(measured: Mapping[str, list[Batch]]) -> list[list[str]]:
    """Give a row for each run: its name, batches, median and longest milliseconds, median balance."""
    rows = []
    for title, batches in measured.items():
        ms = [b.ms for b in warm(batches)]
        balance = statistics.median(b.busiest_over_mean for b in warm(batches))
        rows.append([title, str(len(batches)), f"{statistics.median(ms):,.0f}", f"{max(ms):,.0f}", f"{balance:.3f}"])
    return rows


def charts(measured: Mapping[str, list[Batch]]) -> list[Chart]:
    """Draw the runs over their batches: time, and balance."""
    from penstock.charts.chart import Chart, Line  # noqa: PLC0415

    def lines(value: str) -> list[Line]:
        return [Line(t, [b.batch for b in bs], [float(getattr(b, value)) for b in bs]) for t, bs in measured.items()]

    return [
        Chart("batch", "ms", lines("ms")),
        Chart("batch", "rows of the busiest task over the mean", lines("busiest_over_mean")),
    ]


def judge(work: Path, compared: tuple[Variant, ...]) -> tuple[str, bool]:
    """Compare the answers of all variants with the first one's, batch by batch and row by row; say what was found."""
    ours = answers(work, compared[0])
    rows = sum(t.num_rows for t in ours.values())
    differing = []
    for variant in compared[1:]:
        theirs = answers(work, variant)
        differing += [
            f"batch {batch} of {variant.title}"
            for batch in sorted(ours.keys() | theirs.keys())
            if batch not in ours or batch not in theirs or not ours[batch].equals(theirs[batch])
        ]
    if differing:
        return f"ANSWERS DIFFER from Penstock's in {', '.join(differing)}", False
    return f"answers are equal: {rows:,} rows in {len(ours)} batches, each compared with both plain runs", True


def answers(work: Path, variant: Variant) -> dict[int, pa.Table]:
    """Read what a variant answered, by batch, rows sorted."""
    return {
        int(folder.name.partition("=")[2]): _sorted(folder) for folder in (work / variant.name / "answers").iterdir()
    }


def _sorted(folder: Path) -> pa.Table:
    table = pa.concat_tables([pq.ParquetFile(f).read() for f in sorted(folder.glob("*.parquet"))]).flatten()
    return table.sort_by([(name, "ascending") for name in table.column_names]).combine_chunks()
