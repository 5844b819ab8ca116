"""`penstock.set`, `pin` and `unpin`: change a running query."""

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

_PENSTOCK_ERROR = re.compile(r"\[(PENSTOCK_[A-Z_]+)\] (.*?)(?: SQLSTATE: \w{5})?(?:\n|$)", re.DOTALL)
"""Finds an error of Penstock in the message of another exception."""


def set(query: StreamingQuery, name: str, value: str | float | bool) -> None:  # noqa: A001
    """Set an option of a running query without a restart: ``penstock.set(query, "tasks", 16)``.

    The option applies from the next batch until the run ends. When the query is started again, it has the options that
    it is started with.

    Parameters
    ----------
    query
        The query that ``start()`` returned, in this process or in a Spark Connect client.
    name
        Name of a setting that is changeable at run time (``docs/configuration.md``), with or without the prefix
        ``penstock.`` or ``spark.penstock.``.
    value
        The new value.

    Raises
    ------
    PenstockError
        ``PENSTOCK_UNKNOWN_SETTING`` if there is no such setting; ``PENSTOCK_INVALID_SETTING`` if the value is not
        allowed; ``PENSTOCK_NOT_AT_RUN_TIME`` if the setting cannot be changed at run time; ``PENSTOCK_NOT_A_QUERY`` if
        ``query`` is not a StreamingQuery; ``PENSTOCK_NOT_RUNNING`` if it has ended; ``PENSTOCK_NOT_ENABLED`` if
        Penstock is not enabled in its application.
    """
    if not isinstance(name, str):
        raise PenstockError(
            "PENSTOCK_UNKNOWN_SETTING",
            f"The name of a setting must be a string such as 'tasks', but got {type(name).__name__} {name!r}.",
        )
    if not isinstance(value, str | Real):
        raise PenstockError(
            "PENSTOCK_INVALID_SETTING",
            f"{name} was set to {type(value).__name__} {value!r}. Allowed: a string, a number, True or False.",
        )
    text = str(value).lower() if isinstance(value, bool) else str(value)
    _call(query, f"{name} was not set", lambda api, in_jvm: api.setOption(in_jvm, name, text), "set", (name, text))


def pin(query: StreamingQuery, *key: object) -> None:
    """Give a key of a running query a shard of its own: ``pin(query, "ORD")``.

    The key is pinned from the next batch until the run ends, whatever the policy chooses, and its state moves to the
    new shard. If the query has neither rows nor state of the key, for example because it is misspelt, the field
    ``seen`` in ``pinnedKeys`` of that batch is false and the driver logs it.

    Parameters
    ----------
    query
        The query that ``start()`` returned, in this process or in a Spark Connect client.
    key
        Values of the columns that the stateful part of the query groups by or joins on, in that order and with their
        types.

    Raises
    ------
    PenstockError
        ``PENSTOCK_NO_SUCH_KEY`` if the query's keys have other types; ``PENSTOCK_CANNOT_PIN`` if the query cannot pin
        keys, or no more of them; ``PENSTOCK_NOT_A_QUERY`` if ``query`` is not a StreamingQuery;
        ``PENSTOCK_NOT_RUNNING`` if it has ended or its first batch is not planned yet; ``PENSTOCK_NOT_ENABLED`` if
        Penstock is not enabled in its application.
    """
    _pin_or_unpin("pin", query, key)


def unpin(query: StreamingQuery, *key: object) -> None:
    """Return a pinned key to its base shard and keep it there: ``unpin(query, "ORD")``.

    The key stays in its base shard from the next batch until it is pinned with `pin` or the run ends, whatever the
    policy chooses.

    Parameters
    ----------
    query
        The query that ``start()`` returned, in this process or in a Spark Connect client.
    key
        Values of the key's columns, as for `pin`.

    Raises
    ------
    PenstockError
        The same errors as `pin`.
    """
    _pin_or_unpin("unpin", query, key)


def _pin_or_unpin(procedure: str, query: StreamingQuery, key: tuple[object, ...]) -> None:
    def call(api: Any, in_jvm: Any) -> None:
        from pyspark import SparkContext

        jvm: Any = SparkContext._jvm
        values = jvm.PythonUtils.toSeq([column._jc for column in _literals(key, remote=False)])
        getattr(api, procedure)(in_jvm, values)

    _call(query, f"{_shown(key)} was not {procedure}ned", call, procedure, key)


def _shown(key: tuple[object, ...]) -> str:
    return f"the key ({', '.join(map(repr, key))})"


def _literals(key: Sequence[object], *, remote: bool) -> list[Any]:
    lit: Callable[[Any], Any]
    if remote:
        from pyspark.sql.connect.functions.builtin import lit
    else:
        from pyspark.sql.functions import lit

    literals = []
    for value in key:
        try:
            literals.append(lit(value))
        except Exception as error:  # the type of the exception depends on the value
            raise PenstockError(
                "PENSTOCK_NO_SUCH_KEY",
                f"{_shown(tuple(key))} is invalid: Spark has no type for a value of type {type(value).__name__}. "
                "Pass numbers, strings, dates, times, bytes, or columns such as lit(5).cast('short').",
            ) from error
    return literals


def _call(
    query: StreamingQuery,
    failure: str,
    call: Callable[[Any, Any], None],
    procedure: str,
    arguments: Sequence[object],
) -> None:
    """Call a function of the JVM, or its SQL procedure if the query runs in a Spark Connect server.

    If Penstock is not enabled there, the error message begins with ``failure``.
    """
    remote = is_remote(query, procedure)
    if not has_plugin(query, remote):
        where, remedy = ("this server", IN_A_SERVER) if remote else ("this application", IN_AN_APPLICATION)
        raise PenstockError("PENSTOCK_NOT_ENABLED", f"{failure}: Penstock is not enabled in {where}. {remedy}")
    if remote:
        _call_procedure(query, procedure, arguments)
        return
    from py4j.protocol import Py4JJavaError
    from pyspark import SparkContext

    jvm: Any = SparkContext._jvm
    try:
        call(jvm.io.penstock.Penstock, query._jsq)
    except Py4JJavaError as error:
        exception = error.java_exception
        if not exception.getClass().getName().startswith("io.penstock.errors."):
            raise
        raise PenstockError(exception.errorClass(), exception.detail()) from None


def _call_procedure(query: Any, procedure: str, arguments: Sequence[object]) -> None:
    values = arguments if procedure == "set" else _literals(arguments, remote=True)
    places = ", ".join("?" * (1 + len(values)))
    try:
        query._session.sql(f"CALL penstock.{procedure}({places})", args=[str(query.runId), *values])
    except Exception as error:  # the client maps the server's exceptions to various types
        found = _PENSTOCK_ERROR.search(str(error))
        if found is None:
            raise
        raise PenstockError(found[1], found[2]) from None
