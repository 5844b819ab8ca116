"""Measure Penstock's speed and size against plain Spark.

All sides of a comparison run in one process and take turns, batch by batch. Benchmarks of planners run without Spark.
`benchmarks/README.md` says what each benchmark measures and how to read its results.
"""

from __future__ import annotations

import argparse
import datetime
import json
import shlex
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.api.errors import PenstockError
from penstock.benchmarks import cluster, launch, machine, report, revision, samples, targets
from penstock.benchmarks.samples import Series
from penstock.benchmarks.targets import Target
from penstock.cli._files import check_folder, check_writable

PLUGINS = {
    "barrier-cost": "org.apache.spark.sql.penstock.benchmarks.PlannedBinding",
    "unrouted": "org.apache.spark.sql.penstock.benchmarks.ForeignNodes",
}
"""Session extension of Spark that a benchmark adds."""
PYTHON_OPERATOR = "transformWithState-python"
OPERATORS = (
    targets.AGGREGATION,
    "dedup",
    "session",
    "join",
    "flatMapGroupsWithState",
    "transformWithState",
    PYTHON_OPERATOR,
)
EXECUTORS = {"join-executor": 4, "sidecar": 2}
"""Benchmarks that run on a cluster, and with how many executors of one core they start."""
WITH_SIDECAR = ("loop", "move", "ring", "skew", "latency", "hotkey", "grow", "uniform", "busy", "observe", *EXECUTORS)
COMPILED = 600
"""Number of rounds of short batches after which the JVM has compiled what they run.

Until then, a side with more code is slower. After 150 rounds, compilers still take as much processor time as tasks.
"""


@dataclass(frozen=True)
class Plan:
    """How a benchmark is run.

    Parameters
    ----------
    name
        Name of the benchmark.
    cores
        Number of cores of the session.
    warm_up
        Number of rounds before the measured ones. They are not counted.
    rounds
        Number of measured rounds.
    seconds
        Seconds after which no further round starts, for each file manager.
    file_managers
        Checkpoint file managers that are measured: ``default``, ``local`` or ``both``.
    memory
        Heap size of the Spark process.
    """

    name: str
    cores: int
    warm_up: int
    rounds: int
    seconds: int
    file_managers: str
    memory: str = "3g"


PLANS = {
    plan.name: plan
    for plan in (
        *(Plan(name, 1, 3, 20, 0, "default") for name in revision.PLANNERS),
        Plan("loop", 2, 20, 100, 0, "default"),
        Plan("move", 2, 20, 60, 0, "default", memory="4g"),
        Plan("ring", 2, 20, 60, 0, "default"),
        Plan("join-executor", 4, 6, 10, 300, "local", memory="2g"),
        Plan("sidecar", 2, 20, 40, 300, "local", memory="2g"),
        Plan("store", 2, 10, 12, 600, "default", memory="8g"),
        Plan("recover", 2, 2, 6, 600, "local", memory="8g"),
        Plan("check", 2, 60, 60, 240, "local"),
        Plan("rescale", 16, 40, 100, 600, "local"),
        Plan("large", 2, 20, 60, 600, "local", memory="14g"),
        Plan("skew", 16, 6, 10, 400, "local"),
        Plan("latency", 16, 1, 3, 180, "local", memory="4g"),
        # A run of the workload has 10 batches: one run is the warm-up, 20 runs are measured.
        Plan("hotkey", 16, 10, 200, 1500, "local"),
        Plan("grow", 16, 2, 5, 300, "local"),
        # Shards may move in the first 20 batches.
        Plan("uniform", 16, 20, 30, 900, "local"),
        Plan("busy", 2, 150, 100, 600, "local"),
        Plan("observe", 2, COMPILED, 150, 600, "local"),
        Plan("unrouted", 2, 120, 40, 240, "both"),
    )
}


def plan(arguments: argparse.Namespace) -> Plan:
    """Choose the plan of the benchmark. Each benchmark has defaults for options that are not given."""
    if arguments.name in PLANS:
        chosen = PLANS[arguments.name]
    elif arguments.name == "barrier":
        chosen = (
            Plan("barrier-cost", 2, 30, 120, 240, "local")
            if arguments.cost
            else Plan("barrier", 16, 2, 8, 480, "local")
        )
    elif arguments.op == PYTHON_OPERATOR:
        chosen = Plan("overhead", 2, 6, 20, 150, "both")
    elif arguments.op == targets.AGGREGATION:
        # A batch of the sides with 200 partitions takes seconds, so these sides run in one round of nine.
        chosen = Plan("overhead", 2, 150, 90, 600, "both")
    else:
        chosen = Plan("overhead", 2, COMPILED, 60, 1500, "both")
    return Plan(
        chosen.name,
        arguments.cores or chosen.cores,
        chosen.warm_up if arguments.warm_up is None else arguments.warm_up,
        arguments.rounds or chosen.rounds,
        arguments.seconds or chosen.seconds,
        arguments.file_manager or chosen.file_managers,
        chosen.memory,
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    on_spark = ("overhead", "barrier", *(name for name in PLANS if name not in revision.PLANNERS))
    parser.add_argument("name", nargs="?", choices=(*on_spark, *revision.PLANNERS), help="benchmark to run")
    parser.add_argument(
        "--stale",
        action="store_true",
        help="run no benchmark; list published results whose measured code has changed, with exit status 1 if any has",
    )
    parser.add_argument(
        "--op",
        choices=OPERATORS,
        default=targets.AGGREGATION,
        help="overhead: stateful operator (default: %(default)s)",
    )
    parser.add_argument("--cost", action="store_true", help="barrier: measure its cost instead of its gain")
    parser.add_argument(
        "--growing-heap",
        action="store_true",
        help="recover, rescale and large: start with a small heap instead of the full heap size",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result to this file as JSON")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the result to this file as Markdown")
    parser.add_argument(
        "--samples", type=Path, metavar="FILE", help="write every measured batch to this file, one case per line"
    )
    parser.add_argument("--check", action="store_true", help="exit with status 1 if a target is not met")
    parser.add_argument(
        "--file-manager", choices=("default", "local", "both"), help="file manager that writes the checkpoints"
    )
    parser.add_argument("--rounds", type=int, metavar="N", help="number of measured rounds")
    parser.add_argument("--warm-up", type=int, metavar="N", help="number of rounds before the measured ones")
    parser.add_argument(
        "--seconds", type=int, metavar="N", help="start no further round after this time, for each file manager"
    )
    parser.add_argument(
        "--cores", type=int, metavar="N", help="number of cores of the session; the default depends on the benchmark"
    )
    parser.add_argument("--rows", type=int, metavar="N", help="number of rows in a batch")
    parser.add_argument("--keys", type=int, metavar="N", help="number of distinct keys")
    parser.add_argument(
        "--sides", metavar="REGEX", help="sides to measure; targets that need other sides are reported as not measured"
    )
    parser.add_argument(
        "--cases", metavar="REGEX", help="skew and latency: cases to measure, such as zipf0.5-spread1-omega8"
    )
    parser.add_argument("--checkpoints", type=Path, metavar="DIR", help="existing folder for the checkpoints")


def run(arguments: argparse.Namespace) -> int:
    """Run a benchmark, print its tables and write its result."""
    if arguments.stale:
        return _list_stale()
    if arguments.name is None:
        raise PenstockError(
            "PENSTOCK_BENCH_NAME", "No benchmark was named. Name one; `penstock bench --help` lists them."
        )
    check_writable(arguments, "json", "markdown", "samples")
    check_folder("checkpoints", arguments.checkpoints)
    chosen = plan(arguments)
    spark = None if chosen.name in revision.PLANNERS else _spark_version()
    series = _plans(arguments, chosen) if spark is None else _batches(arguments, chosen, spark)
    result = report.Result(
        _title(arguments),
        spark,
        revision.of(_root(), chosen.name),
        datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        machine.describe(),
        _own_command(arguments),
        report.cases(chosen.name, series),
        of_cases(arguments.cases, _targets(chosen, arguments.op, series)),
    )
    print(report.to_text(result))
    if arguments.json:
        arguments.json.write_text(json.dumps(report.to_json(result), indent=1) + "\n")
    if arguments.markdown:
        arguments.markdown.write_text(report.to_markdown(result))
    return 1 if arguments.check and not result.met else 0


def _root() -> Path | None:
    try:
        return launch.checkout(Path.cwd())
    except PenstockError:
        # Benchmarks of planners do not need a checkout.
        return None


def _list_stale() -> int:
    root = launch.checkout(Path.cwd())
    found = list(revision.stale(root, root / "benchmarks" / "results"))
    for stale in found:
        print(f"{stale.page.relative_to(root)}: {stale.reason}")
    if not found:
        print("All published results were measured with the current code.")
    return 1 if found else 0


def of_cases(cases: str | None, found: Sequence[Target]) -> list[Target]:
    """Return the targets without those that were not measured because `--cases` excluded them.

    Parameters
    ----------
    cases
        Value of `--cases`, or None if all cases were measured.
    found
        All targets of the benchmark.
    """
    return [t for t in found if cases is None or t.value is not None]


def _batches(arguments: argparse.Namespace, chosen: Plan, spark: str) -> list[Series]:
    with tempfile.TemporaryDirectory(prefix="penstock-bench-", dir=arguments.checkpoints) as folder:
        raw = arguments.samples or Path(folder) / "samples.jsonl"
        if chosen.name in EXECUTORS:
            return _on_cluster(arguments, chosen, spark, Path(folder), raw)
        launch.run(_command(arguments, chosen, spark, Path(folder), raw))
        return samples.read(raw.read_text().splitlines())


def _on_cluster(arguments: argparse.Namespace, chosen: Plan, spark: str, folder: Path, raw: Path) -> list[Series]:
    standalone = cluster.Cluster(folder)
    idle: list[float] = []
    killed: list[int] = []

    def measure_idle() -> None:
        idle.extend(cluster.idle_share(EXECUTORS[chosen.name]))
        (folder / "idle-measured").touch()

    signals = cluster.Signals(
        folder,
        {
            "ready": lambda: standalone.add_worker(EXECUTORS[chosen.name]),
            "join": lambda: standalone.add_worker(1),
            "idle": measure_idle,
            "kill": lambda: cluster.kill_sidecars(signals.over, killed),
        },
    )
    try:
        launch.run(_command(arguments, chosen, spark, folder, raw, master=standalone.url))
    finally:
        signals.close()
        standalone.close()
    if chosen.name == "sidecar" and not killed:
        raise PenstockError(
            "PENSTOCK_BENCH_FAILED",
            "The benchmark found no running sidecar to kill. Executors log why their sidecar did not start.",
        )
    idle_series = [Series({"sidecars": "idle"}, [{"processorShare": share} for share in idle])] if idle else []
    return samples.read(raw.read_text().splitlines()) + idle_series


def _plans(arguments: argparse.Namespace, chosen: Plan) -> list[Series]:
    from penstock.benchmarks import planners  # noqa: PLC0415, the import compiles code, which takes long

    if chosen.name == "plan":
        return planners.plan(chosen.rounds, chosen.warm_up, arguments.keys)
    measure = planners.assign if chosen.name == "cores" else planners.refine
    return measure(chosen.rounds, chosen.warm_up)


def _title(arguments: argparse.Namespace) -> str:
    if arguments.name == "barrier":
        return "barrier --cost" if arguments.cost else "barrier"
    if arguments.name != "overhead":
        return str(arguments.name)
    return "overhead" if arguments.op == targets.AGGREGATION else f"overhead --op {arguments.op}"


def _targets(chosen: Plan, operator: str, series: Sequence[Series]) -> list[Target]:
    managers = ("default", "local") if chosen.file_managers == "both" else (chosen.file_managers,)
    alone = {
        "store": targets.store,
        "loop": targets.loop,
        "move": targets.move,
        "ring": targets.ring,
        "plan": targets.plan,
        "cores": targets.cores,
        "refine": targets.refine,
    }
    if chosen.name in alone:
        return alone[chosen.name](series)
    by_manager = {
        "barrier": targets.barrier,
        "barrier-cost": targets.barrier_cost,
        "skew": targets.skew,
        "latency": targets.latency,
        "hotkey": targets.hotkey,
        "grow": targets.grow,
        "uniform": targets.uniform,
        "busy": targets.busy,
        "join-executor": targets.join_executor,
        "sidecar": targets.sidecar,
        "observe": targets.observe,
        "recover": targets.recover,
        "large": targets.large,
        "rescale": targets.rescale,
        "check": targets.check,
    }
    if chosen.name in by_manager:
        return by_manager[chosen.name](series, managers)
    if chosen.name == "unrouted":
        return targets.unrouted(series, managers, chosen.cores)
    return targets.overhead(series, operator, managers, chosen.cores)


def _command(
    arguments: argparse.Namespace, chosen: Plan, spark: str, folder: Path, raw: Path, *, master: str | None = None
) -> list[str]:
    root = launch.checkout(Path.cwd())
    jar = launch.program(root, spark.rpartition(".")[0])
    options = [f"--out={raw}", f"--checkpoints={folder}", f"--file-manager={chosen.file_managers}"]
    options += [f"--warm-up={chosen.warm_up}", f"--rounds={chosen.rounds}", f"--seconds={chosen.seconds}"]
    options += [
        f"--{name}={value}"
        for name in ("rows", "keys", "sides", "cases")
        if (value := getattr(arguments, name)) is not None
    ]
    if chosen.name == "overhead" and arguments.op == PYTHON_OPERATOR:
        application = [str(root / "benchmarks" / "python" / "transform_with_state.py"), *options]
    else:
        if chosen.name == "overhead":
            options.append(f"--op={arguments.op}")
        if chosen.name in EXECUTORS:
            options.append(f"--signals={folder}")
        if chosen.name == "ring":
            options.append(f"--program={root / 'benchmarks' / 'python' / 'ring.py'}")
        application = ["--class", launch.MAIN_CLASS, str(jar), chosen.name, *options]
    # This extension runs before Penstock's own, which the plugin appends.
    conf = {"spark.sql.extensions": PLUGINS[chosen.name]} if chosen.name in PLUGINS else {}
    if chosen.name in EXECUTORS:
        conf |= {"spark.executor.cores": "1", "spark.executor.memory": f"{cluster.EXECUTOR_MEMORY_MB}m"}
        conf["spark.driver.host"] = cluster.HOST
    if chosen.name in WITH_SIDECAR:
        conf["spark.penstock.python"] = sys.executable
    if chosen.name == "recover":
        # Plain Spark's providers write snapshots during maintenance. A short interval ensures that all have one.
        conf["spark.sql.streaming.stateStore.maintenanceInterval"] = "5s"
    if chosen.name in ("recover", "rescale", "large") and not arguments.growing_heap:
        conf["spark.driver.extraJavaOptions"] = f"-Xms{chosen.memory}"
    return launch.submit(conf, application, spark, jar, master=master or f"local[{chosen.cores}]", memory=chosen.memory)


def _own_command(arguments: argparse.Namespace) -> str:
    """Return the command line without the options that only say where to write."""
    words = ["penstock", "bench", arguments.name]
    if arguments.op != targets.AGGREGATION:
        words += ["--op", arguments.op]
    words += ["--cost"] if arguments.cost else []
    words += ["--growing-heap"] if arguments.growing_heap else []
    for name in ("file_manager", "rounds", "warm_up", "seconds", "cores", "rows", "keys", "sides", "cases"):
        value = getattr(arguments, name)
        words += [] if value is None else [f"--{name.replace('_', '-')}", str(value)]
    words += [f"--json={arguments.json.name}"] if arguments.json else []
    return shlex.join(words)


def _spark_version() -> str:
    import pyspark  # noqa: PLC0415, only a run needs it

    return pyspark.__version__
