"""Judge what was found on a machine: what works, what does not, and what to do. Pure functions."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum

from penstock.api.queries import PLUGIN
from penstock.api.settings import settings
from penstock.diagnosis.machine import PYTHON_KEY, Machine

PROVIDER_KEY = "spark.sql.streaming.stateStore.providerClass"
PROVIDER = "io.penstock.PenstockStateStoreProvider"
TRANSPORT_KEY = "spark.penstock.transport"
OLDEST_JAVA = 17
OLDEST_PYTHON = (3, 10)
WITHOUT_PLANNER = (
    "no key is pinned, penstock.tasks=auto and penstock.latency.targetMs have no effect, and policies that need the "
    "planner sidecar place nothing. State and the binding at the barrier still work."
)
WITHOUT_TRANSFER = "on a cluster, executors read shards that move to them from the checkpoint."
PARTS_OF_PYSPARK = {
    "Python operators": "transformWithState and applyInPandasWithState in Python fail. All other operators work.",
    "Spark Connect": "clients of a Connect server do not start.",
}
_JAR = re.compile(r"penstock-spark-(\d+\.\d+)_")


class State(Enum):
    """Result of a check."""

    OK = "ok"
    OFF = "off"
    WRONG = "WRONG"


@dataclass(frozen=True)
class Judgement:
    """The result of checking one item.

    Parameters
    ----------
    what
        Name of the item.
    state
        Whether the item is in order, switched off, or wrong.
    found
        What was found.
    remedy
        What to do. Empty if the item is in order.
    costs
        What does not work because the item is switched off or wrong. Empty if nothing is known.
    """

    what: str
    state: State
    found: str
    remedy: str = ""
    costs: str = ""


def judge(machine: Machine) -> list[Judgement]:
    """Judge all items, with the most important first."""
    return [
        _python(machine),
        _java(machine),
        _spark(machine),
        _jar(machine),
        *_plugin(machine),
        *_settings(machine),
        _planning(machine),
        _sockets(machine),
        *_sidecars(machine),
        *_transports(machine),
        *_parts_of_pyspark(machine),
    ]


def _python(machine: Machine) -> Judgement:
    version = tuple(int(part) for part in re.findall(r"\d+", machine.python)[:2])
    if version < OLDEST_PYTHON:
        return Judgement("Python", State.WRONG, machine.python, "Use Python 3.10 or newer.")
    return Judgement("Python", State.OK, machine.python)


def _java(machine: Machine) -> Judgement:
    if machine.java is None:
        return Judgement("Java", State.WRONG, "none", "Install Java 17 or 21, or set JAVA_HOME to one.")
    found = re.search(r'version "(\d+)', machine.java)
    if found is None or int(found[1]) < OLDEST_JAVA:
        return Judgement("Java", State.WRONG, machine.java, "Use Java 17 or 21: set JAVA_HOME to one.")
    return Judgement("Java", State.OK, machine.java)


def _minors(machine: Machine) -> list[str]:
    return sorted(m[1] for name in machine.jars if (m := _JAR.match(name)))


def _spark(machine: Machine) -> Judgement:
    if machine.spark_home is None or machine.spark is None:
        remedy = "Install PySpark 4.2 or 4.3, or set SPARK_HOME to an installed Spark."
        return Judgement("Spark", State.WRONG, machine.spark_home or "none", remedy)
    found = f"{machine.spark} in {machine.spark_home}"
    pyspark = machine.packages.get("pyspark")
    if pyspark is not None and pyspark != machine.spark:
        remedy = f"PySpark is {pyspark}: install PySpark {machine.spark}, or set SPARK_HOME to Spark {pyspark}."
        return Judgement("Spark", State.WRONG, found, remedy)
    return Judgement("Spark", State.OK, found)


def _jar(machine: Machine) -> Judgement:
    minors = _minors(machine)
    if not minors:
        return Judgement("jar", State.WRONG, "none", "Install the wheel again; in a source checkout, run `make jar`.")
    if machine.spark is not None and ".".join(machine.spark.split(".")[:2]) not in minors:
        return Judgement("jar", State.WRONG, f"for Spark {' and '.join(minors)}", "Install one of these Sparks.")
    return Judgement("jar", State.OK, f"for Spark {' and '.join(minors)}")


def _plugin(machine: Machine) -> Iterator[Judgement]:
    plugins = [name.strip() for name in machine.defaults.get("spark.plugins", "").split(",")]
    where = machine.defaults_file or "spark-defaults.conf"
    if PLUGIN not in plugins:
        remedy = (
            f"To enable it for all sessions, set `spark.plugins {PLUGIN}` in {where}; for one session, call "
            "penstock.configure(...)."
        )
        costs = "sessions that do not call penstock.configure run plain Spark."
        yield Judgement("plugin", State.OFF, f"not in {where}", remedy, costs)
    elif not (machine.bridge or "penstock" in machine.defaults.get("spark.jars", "")):
        remedy = "Set `spark.jars` to the path that `penstock jar` prints, or install the wheel beside PySpark."
        yield Judgement("plugin", State.WRONG, f"in {where}, but its jar is not on the class path", remedy)
    else:
        yield Judgement("plugin", State.OK, f"in {where}")
    provider = machine.defaults.get(PROVIDER_KEY, PROVIDER)
    if provider != PROVIDER:
        remedy = f"Remove {PROVIDER_KEY} from {where}. Queries with existing checkpoints keep their state store."
        costs = "new queries run as in plain Spark: their number of state partitions is fixed, and nothing is balanced."
        yield Judgement("state store", State.OFF, provider, remedy, costs)


def _settings(machine: Machine) -> Iterator[Judgement]:
    known = {setting.key: setting for setting in settings()}
    for key, value in machine.defaults.items():
        if key.startswith("penstock."):
            yield Judgement("setting", State.WRONG, f"{key} is ignored by Spark", f"Write spark.{key}.")
        if not key.startswith("spark.penstock."):
            continue
        if key not in known:
            close = get_close_matches(key, known, n=1)
            remedy = f"Did you mean {close[0]}?" if close else "`penstock config` lists all settings."
            yield Judgement("setting", State.WRONG, f"{key} is unknown", remedy)
        elif key == "spark.penstock.mode" and value == "off":
            remedy = "Set it to `on`, or to `observe` to see what Penstock would decide."
            costs = "queries run as in plain Spark; those with a checkpoint of Penstock run a task for each shard."
            yield Judgement("setting", State.OFF, f"{key} is off", remedy, costs)
        else:
            yield Judgement("setting", State.OK, f"{key} = {value}")


def _planning(machine: Machine) -> Judgement:
    missing = [name for name in ("numpy", "numba", "pyarrow") if machine.packages.get(name) is None]
    if missing:
        remedy = f"Run `pip install {' '.join(missing)}`."
        return Judgement("planning", State.OFF, f"{', '.join(missing)} not installed", remedy, WITHOUT_PLANNER)
    return Judgement("planning", State.OK, f"numpy {machine.packages['numpy']}, numba {machine.packages['numba']}")


def _sockets(machine: Machine) -> Judgement:
    if machine.socket_error is not None:
        remedy = "Set TMPDIR to a folder on a local disk with a short path."
        return Judgement("Unix sockets", State.OFF, machine.socket_error, remedy, WITHOUT_PLANNER)
    return Judgement("Unix sockets", State.OK, "can be created")


def _sidecars(machine: Machine) -> Iterator[Judgement]:
    """Judge whether the Pythons of the sidecars have this package. Without it, batches run without sidecars."""
    for sidecar in machine.sidecars:
        of_driver = sidecar.beside == "driver"
        what, costs = ("driver's Python", WITHOUT_PLANNER) if of_driver else ("executors' Python", WITHOUT_TRANSFER)
        if sidecar.penstock is None:
            remedy = (
                f"Install the package penstock for this Python, or set {PYTHON_KEY} to one that has it, such as "
                f"{machine.own_python}."
            )
            yield Judgement(what, State.OFF, f"{sidecar.program}: {sidecar.error}", remedy, costs)
        elif sidecar.penstock != machine.penstock:
            remedy = f"Install penstock {machine.penstock} there: jar and sidecars must have the same version."
            yield Judgement(what, State.OFF, f"{sidecar.program} has penstock {sidecar.penstock}", remedy, costs)
        else:
            yield Judgement(what, State.OK, sidecar.program)


def _transports(machine: Machine) -> Iterator[Judgement]:
    """Judge which transports between executors can be used here, and say why others cannot."""
    if machine.defaults.get(TRANSPORT_KEY) == "off":
        remedy = "Set it to `auto` to send shards directly between executors."
        yield Judgement("transports", State.OFF, f"{TRANSPORT_KEY} is off", remedy, WITHOUT_TRANSFER)
        return
    usable = [name for name, reason in machine.transports.items() if not reason]
    if usable:
        yield Judgement("transports", State.OK, ", ".join(usable))
    for name, reason in machine.transports.items():
        if reason:
            costs = "shards are sent by another transport." if usable else WITHOUT_TRANSFER
            yield Judgement(name, State.OFF, "cannot be used here", reason, costs)


def _parts_of_pyspark(machine: Machine) -> Iterator[Judgement]:
    """Judge whether the executors' Python has the packages that parts of PySpark need.

    Most clients of Spark Connect run with the same Python.
    """
    program = next((sidecar.program for sidecar in machine.sidecars if sidecar.beside == "executors"), "python3")
    for part, lacking in machine.lacking.items():
        if lacking:
            found = ", ".join(f"{package} ({reason})" if reason else package for package, reason in lacking.items())
            remedy = (
                f"Run `{program} -m pip install {' '.join(lacking)}`, or set PYSPARK_PYTHON to a Python that has them."
            )
            yield Judgement(part, State.OFF, f"{program} lacks {found}", remedy, PARTS_OF_PYSPARK[part])
        else:
            yield Judgement(part, State.OK, program)
