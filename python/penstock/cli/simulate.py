"""Simulate how policies would balance a recorded load, without running Spark.

The trace is a Parquet or CSV file. Each row has a time and a key, and optionally the cost of the row and the size of
its key's state. Keys are hashed as Spark does. Alternatively, the trace is an event log of plain Spark: then the state
partitions of a streaming query are placed, with the time of their tasks as their cost. Throughput is shown as a
percentage of that at perfect balance. The defaults for shards, theta and pinned keys are those of Penstock's settings.
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
"""Defaults of options that are also settings of queries."""
OF_TRACES = ("interval", "time", "key", "cost", "state")
OF_EVENT_LOGS = ("query",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "trace", type=Path, metavar="TRACE", help="Parquet file, CSV file (named .csv) or event log of Spark"
    )
    parser.add_argument("--tasks", type=int, default=8, metavar="N", help="number of parallel tasks; default 8")
    parser.add_argument(
        "--executors",
        type=int,
        default=1,
        metavar="W",
        help="number of executors, for the policy hybrid; must divide the number of tasks; default 1",
    )
    parser.add_argument(
        "--policy", default=DEFAULT, metavar="A,B", help=f"policies to simulate, or all; default {DEFAULT}"
    )
    parser.add_argument("--interval", type=float, metavar="SECONDS", help="time span of a batch; default 60")
    parser.add_argument(
        "--shards",
        type=int,
        metavar="S",
        help=f"number of base shards, for refine and hybrid; default {SHIPPED['shards']}",
    )
    parser.add_argument("--theta", type=float, help=f"largest imbalance that is accepted; default {SHIPPED['theta']}")
    parser.add_argument(
        "--pinned",
        type=int,
        metavar="KEYS",
        help=f"largest number of pinned keys, for hybrid; default {SHIPPED['pinned']}",
    )
    parser.add_argument(
        "--table",
        type=int,
        default=3000,
        metavar="KEYS",
        help="largest number of keys in a routing table; default 3000",
    )
    parser.set_defaults(**SHIPPED)
    parser.add_argument(
        "--time", metavar="COLUMN", help="column with the time, a timestamp or a number of seconds; default time"
    )
    parser.add_argument("--key", metavar="COLUMN", help="column with the key, an integer or a string; default key")
    parser.add_argument(
        "--cost", metavar="COLUMN", help="column with the cost of a row, in any unit; without it, each row costs 1"
    )
    parser.add_argument(
        "--state",
        metavar="COLUMN",
        help="column with the bytes of the key's state; without it, the number of the key's rows so far",
    )
    parser.add_argument("--query", metavar="ID", help="id of the query, if an event log has several")
    parser.add_argument(
        "--png", type=Path, metavar="FILE", help="write charts of the batches of all policies to this file"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write the result of every batch to this file as JSON"
    )


def run(arguments: argparse.Namespace) -> int:
    """Simulate the policies, print the table and write the result."""
    # Imported here because the import compiles code, which takes long.
    from penstock.planning.policies import POLICIES, Setting, policy  # noqa: PLC0415
    from penstock.planning.simulation import simulate  # noqa: PLC0415
    from penstock.workloads import event_log  # noqa: PLC0415

    if arguments.png:
        # Import now, so that a missing package is reported before any work is done.
        from penstock.charts import picture  # noqa: PLC0415
    _check(arguments)
    check_writable(arguments, "json", "png")
    names = list(POLICIES) if arguments.policy == "all" else arguments.policy.split(",")
    if unknown := [name for name in names if name not in POLICIES]:
        raise invalid("policy", ",".join(unknown), f"{', '.join(POLICIES)}, or all")
    is_log = event_log.is_event_log(arguments.trace)
    _check_kind(arguments, OF_TRACES if is_log else OF_EVENT_LOGS, is_log)
    trace = event_log.read(arguments.trace, arguments.query) if is_log else _read(arguments)
    # Each partition of an event log has a shard of its own, so there are at least as many shards as partitions.
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
            with steps.step() as tick:
                batches = trace.batches(interval_s)
                found[name] = simulate(batches, policy(name, setting), time.perf_counter_ns, tick)
    print(_text(trace, found, setting, ("tasks logged", "partitions") if is_log else ("rows", "keys")))
    if arguments.json:
        policies = {name: {"of_perfect": run.of_perfect, **asdict(run)} for name, run in found.items()}
        result = {"tasks": arguments.tasks, "settings": _settings(setting), "policies": policies}
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")
    if arguments.png:
        picture.draw(_charts(found, "ms" if is_log else "cost"), arguments.png)
    return 0


def _read(arguments: argparse.Namespace) -> Trace:
    from penstock.workloads import trace as traces  # noqa: PLC0415

    named = {name: getattr(arguments, name) for name in ("time", "key", "cost", "state") if getattr(arguments, name)}
    return traces.read(arguments.trace, traces.Columns(**named))


def _check_kind(arguments: argparse.Namespace, others: Sequence[str], is_log: bool) -> None:
    """Raise an error if an option was given that has no meaning for this kind of trace."""
    for option in others:
        if getattr(arguments, option) is not None:
            kind = "an event log" if is_log else "a trace"
            raise PenstockError(
                "PENSTOCK_INVALID_SETTING",
                f"--{option} is {getattr(arguments, option)}, but {kind} does not have this option. Omit it.",
            )


def _charts(found: dict[str, Simulated], unit: str) -> list[Chart]:
    from penstock.charts.chart import Chart, Line  # noqa: PLC0415

    def lines(values: Callable[[Simulated], Sequence[float]]) -> list[Line]:
        return [Line(name, range(len(values(run))), values(run)) for name, run in found.items()]

    return [
        Chart("batch", "imbalance (busiest task over the mean)", lines(lambda run: run.imbalance)),
        Chart("batch", f"busiest task, {unit}", lines(lambda run: run.longest)),
        Chart("batch", "state moved, percent", lines(lambda run: [100 * part for part in run.migrated])),
    ]


def _check(arguments: argparse.Namespace) -> None:
    for option, minimum in MINIMA.items():
        if getattr(arguments, option) < minimum:
            raise invalid(option, getattr(arguments, option), f"{minimum} or more")
    if arguments.tasks % arguments.executors:
        raise invalid("executors", arguments.executors, f"a divisor of --tasks, which is {arguments.tasks}")
    if not arguments.theta > 1.0:
        raise invalid("theta", arguments.theta, "more than 1")
    if arguments.interval is not None and not 0 < arguments.interval < float("inf"):
        raise invalid("interval", arguments.interval, "more than 0 seconds")


def _settings(setting: Setting) -> dict[str, float]:
    """Return the settings by the names of their keys in a query."""
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
    for name, run in found.items():
        lines.append(
            f"{name:<10} {run.of_perfect:>10.1%}  {_median(run.imbalance):>9.2f}"
            f"  {max(run.imbalance, default=1.0):>11.2f}"
            f"  {sum(run.migrated) / max(1, len(run.migrated)):>11.2%}  {max(run.table, default=0):>5}"
            f"  {_median(run.planning_ms):>5.1f} ms"
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
