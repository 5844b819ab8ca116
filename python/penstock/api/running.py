"""`penstock.set`, `pin` and `unpin`: what an application may change of a query that runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.api.errors import PenstockError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.streaming.query import StreamingQuery

# PySpark is imported where it is used: the command line works without it.
# ruff: noqa: PLC0415


def set(query: StreamingQuery, name: str, value: str | int | float) -> None:  # noqa: A001
    """Set an option of a query that runs, without a restart: ``penstock.set(query, "tasks", 16)``.

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
    _call(query, f"{name} was not set", lambda api, in_jvm: api.setOption(in_jvm, name, str(value)))


def pin(query: StreamingQuery, *key: object) -> None:
    """Give a key of a query that runs a shard of its own: ``pin(query, "ORD")``.

    From the next batch on, whatever the policy chooses; its state moves with it. It is gone with the run.

    Parameters
    ----------
    query
        What ``start()`` returned.
    key
        The values that the stateful part of the query groups by, or joins on, in that order.

    Raises
    ------
    PenstockError
        ``PENSTOCK_NO_SUCH_KEY`` where the query has keys of other types; ``PENSTOCK_CANNOT_PIN`` where nothing, or
        nothing more, can be pinned; ``PENSTOCK_NOT_RUNNING`` where the query has ended or its first batch was not
        planned yet, or something else was given, or Penstock is not in this application.
    """
    _order("pin", query, key)


def unpin(query: StreamingQuery, *key: object) -> None:
    """Bring a pinned key home, and keep it there: ``unpin(query, "ORD")``.

    From the next batch on, whatever the policy chooses, until it is pinned by `pin`. It is gone with the run.

    Parameters
    ----------
    query
        What ``start()`` returned.
    key
        As for `pin`.

    Raises
    ------
    PenstockError
        As for `pin`.
    """
    _order("unpin", query, key)


def _order(order: str, query: StreamingQuery, key: tuple[object, ...]) -> None:
    from pyspark import SparkContext
    from pyspark.sql.functions import lit

    def ordered(api: Any, in_jvm: Any) -> None:
        jvm: Any = SparkContext._jvm
        values = jvm.PythonUtils.toSeq([lit(value)._jc for value in key])
        getattr(api, order)(in_jvm, values)

    _call(query, f"{key!r} was not {order}ned", ordered)


def _call(query: StreamingQuery, what: str, call: Callable[[Any, Any], None]) -> None:
    """Call the JVM's side; `what` did not come to be where that fails."""
    from py4j.java_gateway import JavaClass
    from py4j.protocol import Py4JJavaError
    from pyspark import SparkContext

    in_jvm = getattr(query, "_jsq", None)
    jvm: Any = SparkContext._jvm
    if in_jvm is None or jvm is None:
        raise PenstockError(
            "PENSTOCK_NOT_RUNNING",
            f"{what}: {type(query).__name__} is no query of a Spark application in this process. Give what start() "
            "returned there; clients of Spark Connect set options when they start a query.",
        )
    api = jvm.io.penstock.Penstock
    if not isinstance(api, JavaClass):
        raise PenstockError(
            "PENSTOCK_NOT_RUNNING",
            f"{what}: Penstock is not in this application. Start it with penstock.configure(SparkSession.builder).",
        )
    try:
        call(api, in_jvm)
    except Py4JJavaError as error:
        refused = error.java_exception
        if not refused.getClass().getName().startswith("io.penstock.errors."):
            raise
        raise PenstockError(refused.errorClass(), refused.detail()) from None
