"""`penstock.set`, `pin` and `unpin`: what an application may change of a query that runs."""

from __future__ import annotations

import re
from numbers import Real
from typing import TYPE_CHECKING, Any

from penstock.api.errors import PenstockError
from penstock.api.queries import IN_A_SERVER, IN_AN_APPLICATION, has_plugin, is_remote

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql.streaming.query import StreamingQuery

# PySpark is imported where it is used: the command line works without it.
# ruff: noqa: PLC0415

_TOLD = re.compile(r"\[(PENSTOCK_[A-Z_]+)\] (.*?)(?: SQLSTATE: \w{5})?(?:\n|$)", re.DOTALL)
"""An error of Penstock in the text of another."""


def set(query: StreamingQuery, name: str, value: str | float | bool) -> None:  # noqa: A001
    """Set an option of a query that runs, without a restart: ``penstock.set(query, "tasks", 16)``.

    The next batch uses it. It is gone with the run: a query that starts again has its own options.

    Parameters
    ----------
    query
        What ``start()`` returned, here or in a client of Spark Connect.
    name
        Of a setting that is changeable at run time (``docs/configuration.md``), with or without ``penstock.`` or
        ``spark.penstock.``.
    value
        What it shall be.

    Raises
    ------
    PenstockError
        ``PENSTOCK_UNKNOWN_SETTING``, ``PENSTOCK_INVALID_SETTING``; ``PENSTOCK_NOT_AT_RUN_TIME`` for a setting that
        takes effect later; ``PENSTOCK_NOT_A_QUERY`` for something else than a query; ``PENSTOCK_NOT_RUNNING`` where it
        has ended; ``PENSTOCK_NOT_ENABLED`` where Penstock is not in its application.
    """
    if not isinstance(name, str):
        raise PenstockError(
            "PENSTOCK_UNKNOWN_SETTING",
            f"The name of a setting is text, such as 'tasks', and got {type(name).__name__} {name!r}.",
        )
    if not isinstance(value, str | Real):
        raise PenstockError(
            "PENSTOCK_INVALID_SETTING",
            f"{name} was set to {type(value).__name__} {value!r}. Allowed: text, a number, True or False.",
        )
    text = str(value).lower() if isinstance(value, bool) else str(value)
    _call(query, f"{name} was not set", lambda api, in_jvm: api.setOption(in_jvm, name, text), "set", (name, text))


def pin(query: StreamingQuery, *key: object) -> None:
    """Give a key of a query that runs a shard of its own: ``pin(query, "ORD")``.

    From the next batch on, whatever the policy chooses; its state moves with it. It is gone with the run. Where the
    query has neither rows nor state of the key, as where it is misspelt, that batch's ``pinnedKeys`` say so (``seen``),
    and the driver's log.

    Parameters
    ----------
    query
        What ``start()`` returned, here or in a client of Spark Connect.
    key
        The values that the stateful part of the query groups by, or joins on, in that order and of their types.

    Raises
    ------
    PenstockError
        ``PENSTOCK_NO_SUCH_KEY`` where the query has keys of other types; ``PENSTOCK_CANNOT_PIN`` where nothing, or
        nothing more, can be pinned; ``PENSTOCK_NOT_A_QUERY`` for something else than a query; ``PENSTOCK_NOT_RUNNING``
        where it has ended or its first batch was not planned yet; ``PENSTOCK_NOT_ENABLED`` where Penstock is not in its
        application.
    """
    _order("pin", query, key)


def unpin(query: StreamingQuery, *key: object) -> None:
    """Return a pinned key to its base shard, and keep it there: ``unpin(query, "ORD")``.

    From the next batch on, whatever the policy chooses, until it is pinned by `pin`. It is gone with the run.

    Parameters
    ----------
    query
        What ``start()`` returned, here or in a client of Spark Connect.
    key
        As for `pin`.

    Raises
    ------
    PenstockError
        As for `pin`.
    """
    _order("unpin", query, key)


def _order(order: str, query: StreamingQuery, key: tuple[object, ...]) -> None:
    def ordered(api: Any, in_jvm: Any) -> None:
        from pyspark import SparkContext

        jvm: Any = SparkContext._jvm
        values = jvm.PythonUtils.toSeq([column._jc for column in _literals(key, remote=False)])
        getattr(api, order)(in_jvm, values)

    _call(query, f"{_shown(key)} was not {order}ned", ordered, order, key)


def _shown(key: tuple[object, ...]) -> str:
    return f"the key ({', '.join(map(repr, key))})"


def _literals(key: Sequence[object], *, remote: bool) -> list[Any]:
    lit: Callable[[Any], Any]
    if remote:
        from pyspark.sql.connect.functions.builtin import lit
    else:
        from pyspark.sql.functions import lit

    made = []
    for value in key:
        try:
            made.append(lit(value))
        except Exception as error:  # of py4j or of PySpark, by type
            raise PenstockError(
                "PENSTOCK_NO_SUCH_KEY",
                f"{_shown(tuple(key))} is none: a value of the type {type(value).__name__} cannot be one of Spark's. "
                "Give numbers, text, dates, times, bytes, or columns such as lit(5).cast('short').",
            ) from error
    return made


def _call(
    query: StreamingQuery,
    what: str,
    call: Callable[[Any, Any], None],
    procedure: str,
    arguments: Sequence[object],
) -> None:
    """Call the JVM's side, or its procedure in SQL if it is a server's; `what` did not come to be where that fails."""
    remote = is_remote(query, procedure)
    if not has_plugin(query, remote):
        where, remedy = ("this server", IN_A_SERVER) if remote else ("this application", IN_AN_APPLICATION)
        raise PenstockError("PENSTOCK_NOT_ENABLED", f"{what}: Penstock is not in {where}. {remedy}")
    if remote:
        _call_procedure(query, procedure, arguments)
        return
    from py4j.protocol import Py4JJavaError
    from pyspark import SparkContext

    jvm: Any = SparkContext._jvm
    try:
        call(jvm.io.penstock.Penstock, query._jsq)
    except Py4JJavaError as error:
        refused = error.java_exception
        if not refused.getClass().getName().startswith("io.penstock.errors."):
            raise
        raise PenstockError(refused.errorClass(), refused.detail()) from None


def _call_procedure(query: Any, procedure: str, arguments: Sequence[object]) -> None:
    values = arguments if procedure == "set" else _literals(arguments, remote=True)
    places = ", ".join("?" * (1 + len(values)))
    try:
        query._session.sql(f"CALL penstock.{procedure}({places})", args=[str(query.runId), *values])
    except Exception as error:  # whatever the client makes of what the server throws
        told = _TOLD.search(str(error))
        if told is None:
            raise
        raise PenstockError(told[1], told[2]) from None
