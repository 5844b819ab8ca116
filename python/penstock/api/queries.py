"""Which query an application means, and whether Penstock is where it runs."""

from __future__ import annotations

from typing import Any

from penstock.api.errors import PenstockError

# PySpark is imported where it is used: the command line works without it.
# ruff: noqa: PLC0415

PLUGIN = "io.penstock.PenstockPlugin"
IN_A_SERVER = (
    f"The plugin must be in the Connect server: start it with --conf spark.plugins={PLUGIN} --jars $(penstock jar) "
    "(docs/connect.md)."
)
IN_AN_APPLICATION = "Start it with penstock.configure(SparkSession.builder)."


def is_remote(query: object, what: str) -> bool:
    """Say whether a query is one of a Connect server, and not of this process.

    Parameters
    ----------
    query
        What `start()` returned.
    what
        Was to be done with it, for the error.

    Raises
    ------
    PenstockError
        ``PENSTOCK_NOT_A_QUERY`` for anything else.
    """
    made_by = {base.__module__ for base in type(query).__mro__ if base.__name__ == "StreamingQuery"}
    if any(module.startswith("pyspark.sql.connect.") for module in made_by):
        return True
    if "pyspark.sql.streaming.query" in made_by:
        return False
    hint = "Call start() first, and give" if hasattr(query, "start") else "Give"
    raise PenstockError(
        "PENSTOCK_NOT_A_QUERY",
        f"penstock.{what} needs a StreamingQuery, and got {_described(query)}. {hint} what start() returned.",
    )


def _described(found: object) -> str:
    if found is None or isinstance(found, bool | int | float | str):
        return f"{type(found).__name__} {found!r}"
    return f"an object of the type {type(found).__name__}"


def has_plugin(query: Any, remote: bool) -> bool:
    """Say whether the application that runs a query has started with the plugin."""
    if remote:
        plugins = query._session.conf.get("spark.plugins", "")
    else:
        from pyspark import SparkContext

        context = SparkContext._active_spark_context
        plugins = context.getConf().get("spark.plugins", "") if context is not None else ""
    return PLUGIN in [name.strip() for name in (plugins or "").split(",")]
