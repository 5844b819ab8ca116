"""What a driver tells of its queries: PROTOCOL.md, section 10."""

import json
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from penstock.api.errors import PenstockError
from penstock.api.printable import printable_document
from penstock.api.progress import report_of

VERSION = 1
TIMEOUT_S = 10.0


@dataclass(frozen=True)
class HeavyKey:
    """A key with much of a region's time or, where that cannot be charged to keys, of its rows.

    What is told of it: ``docs/progress.md``.
    """

    key: str
    shard: int
    share: float
    by_time: bool


@dataclass(frozen=True)
class PinnedKey:
    """A key that has a shard of its own: its rows in the batch, and whether a row or state of it was ever seen."""

    key: str
    shard: int
    rows: int
    seen: bool


@dataclass(frozen=True)
class Region:
    """What was decided for a region in a batch; None where the driver had nothing to tell."""

    region: int
    operators: str
    routed: bool
    tasks: int
    tasks_reason: str | None
    before: float | None
    expected: float | None
    achieved: float | None
    busy_ms: int | None
    shards_moved: int | None
    pinned: int
    decision_micros: int | None
    heavy_keys: tuple[HeavyKey, ...]
    decision: str
    executors: int | None = None
    """That its tasks are divided among."""
    homes: str | None = None
    """Why its shards are on these."""
    pinned_keys: tuple[PinnedKey, ...] = ()
    in_turn: str | None = None
    """Why its tasks run shards, or what feeds them, one after the other; None where they do not."""


@dataclass(frozen=True)
class Operator:
    """What a stateful operator did in a batch: rows that came into it, and the time of these that it took."""

    operator: int
    name: str
    rows: int
    rows_ms: int


@dataclass(frozen=True)
class Batch:
    """A batch that ran."""

    batch: int
    duration_ms: int
    rows: int
    rows_per_second: float
    state_rows: int
    state_bytes: int
    reason: str | None
    """Why Penstock leaves the query alone."""
    regions: tuple[Region, ...]
    operators: tuple[Operator, ...] = ()
    """Of regions that are routed."""
    scaling: str | None = None
    """Why there are so many executors."""


@dataclass(frozen=True)
class Shards:
    """The shards of a region in its newest batch: a number for each shard, or for each task, in every tuple."""

    region: int
    batch: int
    tasks: int
    task_of: tuple[int, ...]
    rows: tuple[int, ...]
    busy_ns: tuple[int, ...]
    keys: tuple[int, ...]
    operations: tuple[int, ...]
    tasks_busy_ns: tuple[int, ...]
    """Of each task, waiting left out; with what is booked to no shard."""
    tasks_wait_ns: tuple[int, ...]
    """Of each task, in which it waited for input."""
    operators: tuple[int, ...] = ()
    """Ids of those that have their state in these shards."""


@dataclass(frozen=True)
class Query:
    """A run of a query."""

    run_id: str
    name: str
    """Its id where it has no name."""
    ended: bool
    exception: str | None
    batches: tuple[Batch, ...]
    shards: tuple[Shards, ...]


@dataclass(frozen=True)
class Status:
    """What a driver told."""

    penstock: str
    spark: str
    application: str
    mode: str
    queries: tuple[Query, ...]


def fetch(url: str, batches: int, query: str | None = None) -> str:
    """Ask a driver for its status.

    Parameters
    ----------
    url
        Of Spark's UI on the driver, such as ``http://localhost:4040``.
    batches
        How many of each run's newest batches are told.
    query
        Id, run id or name of the only query that is told.

    Returns
    -------
    str
        The JSON.

    Raises
    ------
    PenstockError
        ``PENSTOCK_INVALID_URL``, ``PENSTOCK_NO_STATUS`` where nothing answers there, or something else than Penstock.
    """
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise PenstockError(
            "PENSTOCK_INVALID_URL", f"{url} is no URL of a Spark UI. Allowed: http://HOST:PORT or https://HOST:PORT."
        )
    parameters = urllib.parse.urlencode({"batches": batches, **({"query": query} if query else {})})
    try:
        with urllib.request.urlopen(f"{url.rstrip('/')}/penstock/json/?{parameters}", timeout=TIMEOUT_S) as answer:  # noqa: S310 - checked
            text: str = answer.read().decode("utf-8")
    except urllib.error.HTTPError as error:
        why = (
            "that application runs without Penstock"
            if error.code == HTTPStatus.NOT_FOUND
            else f"it answered with {error}"
        )
        raise PenstockError("PENSTOCK_NO_STATUS", f"There is no status at {url}: {why}. {_REMEDY}") from error
    except (OSError, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise PenstockError("PENSTOCK_NO_STATUS", f"Nothing answers at {url}: {reason}. {_REMEDY}") from error
    return text


_REMEDY = (
    "Give the URL of Spark's UI on the driver (SparkContext.uiWebUrl, 4040 is its usual port) of an application with "
    "spark.plugins=io.penstock.PenstockPlugin and spark.ui.enabled=true."
)


def read(text: str) -> Status:
    """Read a status.

    Raises
    ------
    PenstockError
        ``PENSTOCK_NO_STATUS`` where it is none, or one of another version.
    """
    try:
        told = printable_document(json.loads(text))
        version = told["version"]
        if version == VERSION:
            return _status(told)
    except (ValueError, KeyError, TypeError) as error:
        raise PenstockError(
            "PENSTOCK_NO_STATUS", f"What came is no status of Penstock: {error!r}. {_REMEDY}"
        ) from error
    raise PenstockError(
        "PENSTOCK_NO_STATUS",
        f"The application's status has version {version}, this command reads {VERSION}. Install the Penstock of the "
        "application here.",
    )


def _status(told: dict[str, Any]) -> Status:
    return Status(
        told["penstock"],
        told["spark"],
        told["application"]["name"],
        told["mode"],
        tuple(map(_query, told["queries"])),
    )


def _query(told: dict[str, Any]) -> Query:
    return Query(
        told["runId"],
        told["name"] or told["id"],
        told["ended"],
        told["exception"],
        tuple(map(_batch, told["batches"])),
        tuple(map(_shards, told["regions"])),
    )


def _batch(progress: dict[str, Any]) -> Batch:
    state = progress.get("stateOperators", [])
    report = report_of(progress) or {}
    return Batch(
        batch=progress["batchId"],
        duration_ms=progress["durationMs"].get("triggerExecution", 0),
        rows=progress.get("numInputRows", 0),
        rows_per_second=progress.get("processedRowsPerSecond", 0.0),
        state_rows=sum(operator["numRowsTotal"] for operator in state),
        state_bytes=sum(operator["memoryUsedBytes"] for operator in state),
        reason=report.get("reason"),
        regions=tuple(map(_region, report.get("regions") or [])),
        operators=tuple(
            Operator(o["operator"], o["name"], o["rows"], o["rowsMs"]) for o in report.get("operators") or []
        ),
        scaling=report.get("scaling"),
    )


def _heavy_key(told: dict[str, Any]) -> HeavyKey:
    busy_share = told.get("busyShare")
    share = told["rowsShare"] if busy_share is None else busy_share
    return HeavyKey(told["key"], told["shard"], share, by_time=busy_share is not None)


def _region(told: dict[str, Any]) -> Region:
    keys = map(_heavy_key, told.get("heavyKeys") or [])
    return Region(
        region=told["region"],
        operators=told["operators"],
        routed=told["routed"],
        tasks=told["tasks"],
        tasks_reason=told.get("tasksReason"),
        before=told.get("imbalanceBefore"),
        expected=told.get("expectedImbalance"),
        achieved=told.get("achievedImbalance"),
        busy_ms=told.get("busyMs"),
        shards_moved=told.get("shardsMoved"),
        pinned=told.get("pinned") or 0,
        decision_micros=told.get("decisionMicros"),
        heavy_keys=tuple(keys),
        decision=told.get("decision") or told.get("reason") or "",
        executors=told.get("executors"),
        homes=told.get("homes"),
        pinned_keys=tuple(PinnedKey(k["key"], k["shard"], k["rows"], k["seen"]) for k in told.get("pinnedKeys") or []),
        in_turn=told.get("inTurn"),
    )


def _shards(told: dict[str, Any]) -> Shards:
    names = ("taskOf", "rows", "busyNs", "keys", "operations")
    arrays = {name: tuple(map(int, told[name])) for name in names}
    if len({len(array) for array in arrays.values()}) != 1 or not all(0 <= t < told["tasks"] for t in arrays["taskOf"]):
        raise ValueError(f"shards of region {told['region']} do not fit each other")
    busy_ns, wait_ns = (tuple(map(int, told[name])) for name in ("tasksBusyNs", "tasksWaitNs"))
    if any(len(array) != told["tasks"] for array in (busy_ns, wait_ns)):
        raise ValueError(f"tasks of region {told['region']} do not fit each other")
    return Shards(
        region=told["region"],
        batch=told["batch"],
        tasks=told["tasks"],
        task_of=arrays["taskOf"],
        rows=arrays["rows"],
        busy_ns=arrays["busyNs"],
        keys=arrays["keys"],
        operations=arrays["operations"],
        tasks_busy_ns=busy_ns,
        tasks_wait_ns=wait_ns,
        operators=tuple(o["operator"] for o in told.get("operators", [])),
    )
