"""Show what policies would make of a trace, before anything is installed.

The trace is a Parquet or CSV file with a time and a key in each row, and perhaps what the row costs and how large the
state of its key is. Keys are placed as Spark's hash places them. Or it is an event log of plain Spark: then the state
partitions of a streaming query are placed, each with the time that its tasks took. Throughput is told over that of
perfect balance. What is not said is as Penstock ships: shards, theta and pinned keys are the defaults of its settings.
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
from penstock.api.settings import default
from penstock.cli._files import check_writable
from penstock.cli._options import invalid
from penstock.cli._progress import Steps

if TYPE_CHECKING:
    from penstock.charts.chart import Chart
    from penstock.planning.policies import Setting
    from penstock.planning.simulation import Simulated
    from penstock.workloads.trace import Trace

DEFAULT = "static,hindsight,hybrid,refine,mixed,ideal"
DEFAULT_INTERVAL_S = 60.0
MINIMA = {"tasks": 1, "executors": 1, "shards": 1, "table": 0, "pinned": 0}
SHIPPED = {"shards": int(default("shards")), "theta": float(default("theta")), "pinned": int(default("pinned.max"))}
"""Defaults of options that are settings of queries too."""
OF_TRACES = ("interval", "time", "key", "cost", "state")
OF_EVENT_LOGS = ("query",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("trace", type=Path, metavar="TRACE", help="Parquet, CSV if it is named .csv, event log")
    parser.add_argument("--tasks", type=int, default=8, metavar="N", help="tasks side by side; default 8")
    parser.add_argument("--executors", type=int, default=1, metavar="W", help="that hybrid has; divides N; default 1")
    parser.add_argument("--policy", default=DEFAULT, metavar="A,B", help=f"which, or all; default {DEFAULT}")
    parser.add_argument("--interval", type=float, metavar="SECONDS", help="of a batch; default 60")
    parser.add_argument("--shards", type=int, metavar="S", help=f"of refine and hybrid; default {SHIPPED['shards']}")
    parser.add_argument(
        "--theta", type=float, help=f"largest load over the mean that is left alone; default {SHIPPED['theta']}"
    )
    parser.add_argument("--pinned", type=int, metavar="KEYS", help=f"that hybrid pins; default {SHIPPED['pinned']}")
    parser.add_argument("--table", type=int, default=3000, metavar="KEYS", help="in a routing table; default 3000")
    parser.set_defaults(**SHIPPED)
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
    check_writable(arguments, "json", "png")
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
        arguments.pinned,
        executors=arguments.executors,
        total=trace.cost_by_key,
    )
    interval_s = 1.0 if is_log else arguments.interval or DEFAULT_INTERVAL_S
    found = {}
    steps = Steps(names, trace.batch_count(interval_s))
    with steps.shown():
        for name in names:
            with steps.step() as told:
                batches = trace.batches(interval_s)
                found[name] = simulate(batches, policy(name, setting), time.perf_counter_ns, told)
    print(_text(trace, found, setting, ("tasks logged", "partitions") if is_log else ("rows", "keys")))
    if arguments.json:
        written = {name: {"of_perfect": of.of_perfect, **asdict(of)} for name, of in found.items()}
        told_of = {"tasks": arguments.tasks, "settings": _settings(setting), "policies": written}
        arguments.json.write_text(json.dumps(told_of, indent=1) + "\n")
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
    for option, least in MINIMA.items():
        if getattr(arguments, option) < least:
            raise invalid(option, getattr(arguments, option), f"{least} or more")
    if arguments.tasks % arguments.executors:
        raise invalid("executors", arguments.executors, f"a divisor of --tasks, which is {arguments.tasks}")
    if not arguments.theta > 1.0:
        raise invalid("theta", arguments.theta, "more than 1")
    if arguments.interval is not None and not 0 < arguments.interval < float("inf"):
        raise invalid("interval", arguments.interval, "more than 0 seconds")


def _settings(setting: Setting) -> dict[str, float]:
    """By the names that queries have for them."""
    return {"shards": setting.shards, "theta": setting.theta, "pinned.max": setting.pinned}


def _text(trace: Trace, found: dict[str, Simulated], setting: Setting, counted: tuple[str, str]) -> str:
    batches = len(next(iter(found.values())).imbalance) if found else 0
    rows, keys = counted
    lines = [
        f"{len(trace.key):,} {rows}, {len(trace.hashes):,} {keys}, {batches:,} batches, {setting.tasks} tasks",
        *([_hybrid(setting)] if "hybrid" in found else []),
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


def _hybrid(setting: Setting) -> str:
    shipped = (setting.shards, setting.theta, setting.pinned) == tuple(SHIPPED.values())
    return (
        f"hybrid{' as shipped' if shipped else ''}: {setting.shards} shards, theta {setting.theta:g}, "
        f"up to {setting.pinned} pinned keys"
    )


def _median(values: Sequence[float]) -> float:
    return statistics.median(values) if values else 0.0
