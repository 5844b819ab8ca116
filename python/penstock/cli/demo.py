"""Run one streaming query on real data with plain Spark and with Penstock, and compare speed and answers.

Recorded data are replayed by event time, through files or Kafka, so that the load changes as it did when they were
recorded. The query runs three times: with plain Spark and its defaults, with plain Spark tuned for this machine, and
with Penstock and its defaults. At the end every row of every answer is compared; the exit status is 1 if one differs.
The demo also simulates several ways to place the keys of these data on tasks. `--trace` only writes the trace of that
simulation, as input for `penstock simulate`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
from contextlib import nullcontext
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
from rich.console import Console
from rich.live import Live

from penstock.api.errors import PenstockError
from penstock.cli._files import check_writable
from penstock.cli._options import invalid
from penstock.demo import runner
from penstock.demo.answers import judge
from penstock.demo.kafka import Kafka, kafka
from penstock.demo.placement import placements, sentence
from penstock.demo.record import Record
from penstock.demo.report import HEADER, charts, document, summary
from penstock.demo.screen import screen, table
from penstock.demo.variant import Variant, variants
from penstock.workloads.questions import QUESTIONS, Question
from penstock.workloads.replay import cut

MIN_SECONDS, MAX_SECONDS = 5.0, 3600.0
PIECES_PER_SECOND = 3
OWN_BROKER = ""
ADDRESS = re.compile(r"(?:[^\s:,\[\]]+|\[[0-9a-fA-F:.]+\]):[0-9]{1,5}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    cores = os.cpu_count() or 1
    parser.add_argument(
        "--data", choices=QUESTIONS, default="flights", help="data set and its query (default: %(default)s)"
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path("data"),
        help="folder with the data sets (default: %(default)s, which a checkout of the project has)",
    )
    parser.add_argument(
        "--seconds", type=float, default=20.0, metavar="S", help="duration of each replay: 5 to 3600 (default: 20)"
    )
    parser.add_argument(
        "--cores", type=int, default=cores, metavar="N", help=f"number of cores for Spark (default: all, here {cores})"
    )
    parser.add_argument(
        "--kafka",
        nargs="?",
        const=OWN_BROKER,
        metavar="HOST:PORT",
        help="replay through this Kafka broker instead of files; without an address, a broker is started",
    )
    parser.add_argument(
        "--kafka-jars",
        type=Path,
        default=Path(".work/kafka"),
        metavar="FOLDER",
        help="folder that `make kafka-jars` wrote (default: %(default)s in a checkout of the project)",
    )
    parser.add_argument(
        "--trace", type=Path, metavar="FILE", help="only write a trace with the work of each key to this file"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all batches of all runs to this file as JSON")
    parser.add_argument("--png", type=Path, metavar="FILE", help="write charts of the runs over time to this file")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with table and charts to this file")


def run(arguments: argparse.Namespace) -> int:
    """Run all variants, one after another, and compare them."""
    _check(arguments)
    check_writable(arguments, "json", "png", "html", "trace")
    if arguments.html or arguments.png:
        # Import now, so that a missing package is reported before any work is done.
        from penstock.charts import html, picture  # noqa: PLC0415
    question = QUESTIONS[arguments.data]
    file = arguments.folder / question.file
    if not file.is_file():
        raise PenstockError(
            "PENSTOCK_NO_DATA",
            f"{file} does not exist. Run the command in a checkout of the project, or set --folder to the folder "
            "`data` of one.",
        )
    if arguments.trace:
        _write_trace(question, file, arguments.trace)
        return 0
    console = Console()
    with tempfile.TemporaryDirectory(prefix="penstock-demo-") as folder:
        work = Path(folder)
        pieces = int(arguments.seconds * PIECES_PER_SECOND)
        streams = question.streams(pq.read_table(file))
        cut(streams, question.span, pieces, work / "pieces")
        with nullcontext() if arguments.kafka is None else kafka(arguments.kafka, arguments.kafka_jars, work) as broker:
            compared, records = _run_all(console, arguments, work, broker)
        verdict, equal = judge(work, compared)
    console.print(table(compared, records))
    console.print(verdict, style="green" if equal else "bold red")
    placed = placements(question, streams)
    console.print(sentence(question, placed))
    drawn = charts(compared, records) if arguments.png or arguments.html else []
    if arguments.json:
        result = {
            "question": question.asks,
            "equal": equal,
            "verdict": verdict,
            "placements": [asdict(placement) for placement in placed],
            "runs": document(compared, records),
        }
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")
    if arguments.png:
        picture.draw(drawn, arguments.png)
    if arguments.html:
        rows = summary(compared, records)
        notes = [_setup(arguments, question), verdict, sentence(question, placed)]
        arguments.html.write_text(html.page(question.asks, notes, HEADER, rows, drawn))
    return 0 if equal else 1


def _write_trace(question: Question, file: Path, trace: Path) -> None:
    pq.write_table(question.trace(question.streams(pq.read_table(file))), trace)
    print(f"penstock simulate {trace} --cost cost --interval {question.interval.total_seconds():g}")


def _run_all(
    console: Console, arguments: argparse.Namespace, work: Path, broker: Kafka | None
) -> tuple[tuple[Variant, ...], dict[str, Record]]:
    question, compared = QUESTIONS[arguments.data], variants(arguments.cores)
    records: dict[str, Record] = {}
    console.print(question.asks, style="bold")
    console.print(_setup(arguments, question))
    with Live(console=console, auto_refresh=False, transient=True) as live:

        def look(name: str, record: Record) -> None:
            records[name] = record
            if console.is_terminal:
                live.update(screen(question.asks, compared, records), refresh=True)

        for variant in compared:
            if not console.is_terminal:
                console.print(f"{variant.title} ({variant.how}) ...")
            records[variant.name] = runner.run(
                variant,
                arguments.data,
                work,
                partial(look, variant.name),
                seconds=arguments.seconds,
                cores=arguments.cores,
                kafka=broker,
            )
    return compared, records


def _setup(arguments: argparse.Namespace, question: Question) -> str:
    days = question.span / timedelta(days=1)
    source = "files" if arguments.kafka is None else "Kafka"
    return (
        f"{question.file}: {days:.3g} days of event time in {arguments.seconds:g} s through {source}, "
        f"on {arguments.cores} cores."
    )


def _check(arguments: argparse.Namespace) -> None:
    if not MIN_SECONDS <= arguments.seconds <= MAX_SECONDS:
        raise invalid("seconds", arguments.seconds, f"{MIN_SECONDS:g} to {MAX_SECONDS:g}")
    if arguments.cores < 1:
        raise invalid("cores", arguments.cores, "1 or more")
    if arguments.kafka not in (None, OWN_BROKER) and not ADDRESS.fullmatch(arguments.kafka):
        raise invalid("kafka", arguments.kafka, "HOST:PORT, such as localhost:9092")
