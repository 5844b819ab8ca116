"""Show what policies would make of a trace, before anything is installed.

The trace is a Parquet or CSV file with a time and a key in each row, and perhaps what the row costs and how large the
state of its key is. Keys are placed as Spark's hash places them. Or it is an event log of Spark's: then the state
partitions of a streaming query are placed, each with the time that its tasks took. Throughput is told over that of
perfect balance.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.api.errors import PenstockError
from penstock.cli._options import invalid

if TYPE_CHECKING:
    from penstock.charts.chart import Chart
    from penstock.planning.simulation import Simulated
    from penstock.workloads.trace import Trace

DEFAULT = "static,hindsight,hybrid,refine,mixed,ideal"
DEFAULT_INTERVAL_S = 60.0
LEAST = {"tasks": 1, "workers": 1, "shards": 1, "table": 0}
OF_TRACES = ("interval", "time", "key", "cost", "state")
OF_EVENT_LOGS = ("query",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("trace", type=Path, metavar="TRACE", help="Parquet, CSV if it is named .csv, event log")
    parser.add_argument("--tasks", type=int, default=8, metavar="N", help="tasks side by side; default 8")
    parser.add_argument("--workers", type=int, default=1, metavar="W", help="that hybrid has; divides N; default 1")
    parser.add_argument("--policy", default=DEFAULT, metavar="A,B", help=f"which, or all; default {DEFAULT}")
    parser.add_argument("--interval", type=float, metavar="SECONDS", help="of a batch; default 60")
    parser.add_argument("--shards", type=int, default=256, metavar="S", help="of refine and hybrid; default 256")
    parser.add_argument("--theta", type=float, default=1.1, help="largest load over the mean that is left alone; 1.1")
    parser.add_argument("--table", type=int, default=3000, metavar="KEYS", help="in a routing table, or pinned; 3000")
    parser.add_argument("--time", metavar="COLUMN", help="timestamp or seconds; default time")
    parser.add_argument("--key", metavar="COLUMN", help="integer or string; default key")
    parser.add_argument("--cost", metavar="COLUMN", help="of a row, in any unit; 1 without")
    parser.add_argument("--state", metavar="COLUMN", help="bytes of the key's state; its rows so far without")
    parser.add_argument("--query", metavar="ID", help="of an event log that has several queries")
    parser.add_argument("--png", type=Path, metavar="FILE", help="draw the batches of all policies here")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result, batch by batch, here")


def run(arguments: argparse.Namespace) -> int:
    """Simulate, print the table and write the result."""
    # Other commands need not wait for the compiler.
    from penstock.planning.policies import POLICIES, Setting, policy  # noqa: PLC0415
    from penstock.planning.simulation import simulate  # noqa: PLC0415
    from penstock.workloads import event_log  # noqa: PLC0415

    if arguments.png:
        # Not after all the work.
        from penstock.charts import picture  # noqa: PLC0415
    _check(arguments)
    names = list(POLICIES) if arguments.policy == "all" else arguments.policy.split(",")
    if unknown := [name for name in names if name not in POLICIES]:
        raise invalid("policy", ",".join(unknown), f"{', '.join(POLICIES)}, or all")
    is_log = event_log.is_event_log(arguments.trace)
    _check_kind(arguments, OF_TRACES if is_log else OF_EVENT_LOGS, is_log)
    trace = event_log.read(arguments.trace, arguments.query) if is_log else _read(arguments)
    # A shard is a partition of an event log, or several.
    shards = max(arguments.shards, len(trace.hashes)) if is_log else arguments.shards
    setting = Setting(
        trace.hashes,
        arguments.tasks,
        shards,
        arguments.theta,
        arguments.table,
        workers=arguments.workers,
        total=trace.cost_by_key,
    )
    interval_s = 1.0 if is_log else arguments.interval or DEFAULT_INTERVAL_S
    found = {name: simulate(trace.batches(interval_s), policy(name, setting), time.perf_counter_ns) for name in names}
    print(_text(trace, found, arguments.tasks, ("tasks logged", "partitions") if is_log else ("rows", "keys")))
    if arguments.json:
        written = {name: {"of_perfect": of.of_perfect, **asdict(of)} for name, of in found.items()}
        arguments.json.write_text(json.dumps({"tasks": arguments.tasks, "policies": written}, indent=1) + "\n")
    if arguments.png:
        picture.draw(_charts(found, "ms" if is_log else "cost"), arguments.png)
    return 0


def _read(arguments: argparse.Namespace) -> Trace:
    from penstock.workloads import trace as traces  # noqa: PLC0415

    named = {name: getattr(arguments, name) for name in ("time", "key", "cost", "state") if getattr(arguments, name)}
    return traces.read(arguments.trace, traces.Columns(**named))


def _check_kind(arguments: argparse.Namespace, others: Sequence[str], is_log: bool) -> None:
    """Refuse options that mean nothing here."""
    for option in others:
        if getattr(arguments, option) is not None:
            kind = "an event log" if is_log else "a trace"
            raise PenstockError(
                "PENSTOCK_INVALID_SETTING",
                f"--{option} is {getattr(arguments, option)}, but {kind} has none: leave it out.",
            )


def _charts(found: dict[str, Simulated], unit: str) -> list[Chart]:
    from penstock.charts.chart import Chart, Line  # noqa: PLC0415

    def lines(of: Callable[[Simulated], Sequence[float]]) -> list[Line]:
        return [Line(name, range(len(of(made))), of(made)) for name, made in found.items()]

    return [
        Chart("batch", "busiest task over the mean", lines(lambda made: made.imbalance)),
        Chart("batch", f"busiest task, {unit}", lines(lambda made: made.longest)),
        Chart("batch", "state moved, per cent", lines(lambda made: [100 * part for part in made.migrated])),
    ]


def _check(arguments: argparse.Namespace) -> None:
    for option, least in LEAST.items():
        if getattr(arguments, option) < least:
            raise invalid(option, getattr(arguments, option), f"{least} or more")
    if arguments.tasks % arguments.workers:
        raise invalid("workers", arguments.workers, f"a divisor of --tasks, which is {arguments.tasks}")
    if not arguments.theta > 1.0:
        raise invalid("theta", arguments.theta, "more than 1")
    if arguments.interval is not None and not 0 < arguments.interval < float("inf"):
        raise invalid("interval", arguments.interval, "more than 0 seconds")


def _text(trace: Trace, found: dict[str, Simulated], tasks: int, counted: tuple[str, str]) -> str:
    batches = len(next(iter(found.values())).imbalance) if found else 0
    rows, keys = counted
    lines = [
        f"{len(trace.key):,} {rows}, {len(trace.hashes):,} {keys}, {batches:,} batches, {tasks} tasks",
        "",
        "policy     throughput  imbalance  worst batch  state moved  table  planning",
        "           of perfect     median                   a batch   most    median",
    ]
    for name, of in found.items():
        lines.append(
            f"{name:<10} {of.of_perfect:>10.1%}  {_median(of.imbalance):>9.2f}  {max(of.imbalance, default=1.0):>11.2f}"
            f"  {sum(of.migrated) / max(1, len(of.migrated)):>11.2%}  {max(of.table, default=0):>5}"
            f"  {_median(of.planning_ms):>5.1f} ms"
        )
    return "\n".join(lines)


def _median(values: Sequence[float]) -> float:
    return statistics.median(values) if values else 0.0
