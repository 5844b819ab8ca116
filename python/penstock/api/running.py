"""`penstock.set_option`: what an application may change of a query that runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.api.errors import PenstockError

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

# PySpark is imported where it is used: the command line works without it.
# ruff: noqa: PLC0415


def set_option(query: StreamingQuery, name: str, value: str | int | float) -> None:
    """Set an option of a query that runs, without a restart: ``set_option(query, "tasks", 16)``.

    The next batch uses it. It is gone with the run: a query that starts again has its own options.

    Parameters
    ----------
    query
        What ``start()`` returned.
    name
        Of a setting that takes effect at the next batch (``penstock config``), with or without ``penstock.``.
    value
        What it shall be.

    Raises
    ------
    PenstockError
        ``PENSTOCK_UNKNOWN_SETTING``, ``PENSTOCK_INVALID_SETTING``; ``PENSTOCK_NOT_AT_RUN_TIME`` for a setting that
        takes effect later; ``PENSTOCK_NOT_RUNNING`` where the query has ended, or something else was given, or Penstock
        is not in this application.
    """
    from py4j.java_gateway import JavaClass
    from py4j.protocol import Py4JJavaError
    from pyspark import SparkContext

    in_jvm = getattr(query, "_jsq", None)
    jvm: Any = SparkContext._jvm
    if in_jvm is None or jvm is None:
        raise PenstockError(
            "PENSTOCK_NOT_RUNNING",
            f"{name} was not set: {type(query).__name__} is no query of a Spark application in this process. Give what "
            "start() returned there; clients of Spark Connect set options when they start a query.",
        )
    api = jvm.io.penstock.Penstock
    if not isinstance(api, JavaClass):
        raise PenstockError(
            "PENSTOCK_NOT_RUNNING",
            f"{name} was not set: Penstock is not in this application. Start it with "
            "penstock.configure(SparkSession.builder).",
        )
    try:
        api.setOption(in_jvm, name, str(value))
    except Py4JJavaError as error:
        refused = error.java_exception
        if not refused.getClass().getName().startswith("io.penstock.errors."):
            raise
        raise PenstockError(refused.errorClass(), refused.detail()) from None
