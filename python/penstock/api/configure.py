"""`penstock.configure`: the one line that a PySpark application adds."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING, Any

from penstock.api.errors import PenstockError
from penstock.api.jars import jar_for
from penstock.api.queries import IN_A_SERVER, PLUGIN

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

# PySpark is imported where it is used: the command line works without it.
# ruff: noqa: PLC0415

PYTHON_KEYS = ("spark.pyspark.driver.python", "spark.pyspark.python", "spark.penstock.python")
PYTHON_VARIABLES = ("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON")
"""Environment variables that name the Python of the planner sidecar. If nothing names it, the first one on the path is
used, which may be another Python than this one."""


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Enable Penstock for the session that a builder will create.

    Adds the jar that fits the installed PySpark to the class path and the plugin to ``spark.plugins``. If no Python is
    configured, the planner sidecar runs with this one. Other settings of the builder are kept. Set Penstock's settings
    like any others: ``builder.config("spark.penstock.theta", "1.1")``.

    Parameters
    ----------
    builder
        ``SparkSession.builder``, before ``getOrCreate``.

    Returns
    -------
    SparkSession.Builder
        The same builder.

    Raises
    ------
    PenstockError
        ``PENSTOCK_INVALID_BUILDER`` if the argument is not a builder, or is the builder of a Spark Connect client;
        ``PENSTOCK_UNSUPPORTED_SPARK`` if there is no jar for this PySpark; ``PENSTOCK_SESSION_RUNNING`` if Spark is
        already running, because plugins are loaded only at its start; ``PENSTOCK_CLASS_PATH`` if the class path cannot
        be changed by a builder any more.
    """
    import pyspark

    options = _options(builder)
    _refuse_running_session()
    jar = jar_for(pyspark.__version__)
    if _jvm_runs():
        _require_plugin_in_jvm(jar)
    else:
        _refuse_hidden_jars(jar)
        builder.config("spark.jars", _with(str(jar), options.get("spark.jars")))
    builder.config("spark.plugins", _with(PLUGIN, options.get("spark.plugins")))
    if all(options.get(key) in (None, "auto") for key in PYTHON_KEYS) and not any(
        map(os.environ.get, PYTHON_VARIABLES)
    ):
        builder.config(PYTHON_KEYS[0], sys.executable)
    return builder


def _options(builder: object) -> dict[str, Any]:
    from pyspark.sql import SparkSession

    if not isinstance(builder, SparkSession.Builder):
        found = builder.__name__ if isinstance(builder, type) else f"a {type(builder).__name__}"
        raise PenstockError(
            "PENSTOCK_INVALID_BUILDER",
            f"penstock.configure takes SparkSession.builder, but got {found}. "
            "Call penstock.configure(SparkSession.builder).getOrCreate().",
        )
    options: dict[str, Any] = builder._options  # a builder has no public access to its options
    remote = options.get("spark.remote", os.environ.get("SPARK_REMOTE"))
    if remote is not None:
        raise PenstockError("PENSTOCK_INVALID_BUILDER", f"This builder makes a Spark Connect client. {_to_do(remote)}")
    return options


def _to_do(remote: str) -> str:
    if remote.startswith("local"):
        return (
            f"The plugin must run in the server, which PySpark starts in the background for {remote}. Configure the "
            f'server with .config("spark.plugins", "{PLUGIN}").config("spark.jars", JAR), where JAR is the path that '
            "`penstock jar` prints (docs/connect.md)."
        )
    return IN_A_SERVER


def _refuse_running_session() -> None:
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:
        raise PenstockError(
            "PENSTOCK_SESSION_RUNNING",
            "A Spark application is already running in this process, and plugins are loaded only when it starts. Call "
            "penstock.configure before the first session is created, or stop the running session.",
        )


def _jvm_runs() -> bool:
    from pyspark import SparkContext

    return SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ


def _require_plugin_in_jvm(jar: Path) -> None:
    """Check that the plugin is on the class path of a running JVM, which cannot be changed.

    The JVM is already running under spark-submit and after an earlier session was stopped.
    """
    from pyspark import SparkContext

    SparkContext._ensure_initialized()
    java = SparkContext._jvm.java.lang  # type: ignore[union-attr]
    try:
        java.Class.forName(PLUGIN, True, java.Thread.currentThread().getContextClassLoader())
    except Exception as error:  # py4j wraps every Java exception in its own
        raise PenstockError(
            "PENSTOCK_CLASS_PATH",
            f"The JVM is already running, without {PLUGIN} on its class path. Start it with --jars {jar}, or restart "
            "Python and call penstock.configure before anything else starts Spark.",
        ) from error


def _refuse_hidden_jars(jar: Path) -> None:
    """Raise an error if the environment sets jars, because those silently replace the builder's jars."""
    arguments = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    if any(a == "--jars" or a.startswith(("--jars=", "spark.jars=")) for a in arguments):
        raise PenstockError(
            "PENSTOCK_CLASS_PATH",
            f"PYSPARK_SUBMIT_ARGS sets jars, which replace those of the builder. Add {jar} to PYSPARK_SUBMIT_ARGS.",
        )


def _with(added: str, present: object) -> str:
    """Add an entry to a comma-separated list if the list does not contain it."""
    entries = [e.strip() for e in str(present or "").split(",") if e.strip()]
    return ",".join(entries if added in entries else [*entries, added])
