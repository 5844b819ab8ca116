"""Check the query that an application passes, and whether Penstock is enabled where it runs."""

from __future__ import annotations

from typing import Any

from penstock.api.errors import PenstockError

# PySpark is imported where it is used: the command line works without it.
# ruff: noqa: PLC0415

PLUGIN = "io.penstock.PenstockPlugin"
IN_A_SERVER = (
    f"The plugin must run in the Connect server: start the server with --conf spark.plugins={PLUGIN} "
    "--jars $(penstock jar) (docs/connect.md)."
)
IN_AN_APPLICATION = "Start it with penstock.configure(SparkSession.builder)."


def is_remote(query: object, function: str) -> bool:
    """Return whether a query runs in a Spark Connect server rather than in this process.

    Parameters
    ----------
    query
        The query that ``start()`` returned.
    function
        Name of the called function of ``penstock``, for the error message.

    Raises
    ------
    PenstockError
        ``PENSTOCK_NOT_A_QUERY`` if ``query`` is not a StreamingQuery.
    """
    modules = {base.__module__ for base in type(query).__mro__ if base.__name__ == "StreamingQuery"}
    if any(module.startswith("pyspark.sql.connect.") for module in modules):
        return True
    if "pyspark.sql.streaming.query" in modules:
        return False
    hint = "Call start() first, and pass" if hasattr(query, "start") else "Pass"
    raise PenstockError(
        "PENSTOCK_NOT_A_QUERY",
        f"penstock.{function} needs a StreamingQuery, but got {_described(query)}. {hint} what start() returned.",
    )


def _described(found: object) -> str:
    if found is None or isinstance(found, bool | int | float | str):
        return f"{type(found).__name__} {found!r}"
    return f"an object of type {type(found).__name__}"


def has_plugin(query: Any, remote: bool) -> bool:
    """Return whether the application that runs a query was started with the plugin."""
    if remote:
        plugins = query._session.conf.get("spark.plugins", "")
    else:
        from pyspark import SparkContext

        context = SparkContext._active_spark_context
        plugins = context.getConf().get("spark.plugins", "") if context is not None else ""
    return PLUGIN in [name.strip() for name in (plugins or "").split(",")]
