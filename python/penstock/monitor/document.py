"""The status document of a driver: PROTOCOL.md, section 10."""

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
    """A key with a large share of a region's time or, if the time of single keys is unknown, of its rows.

    ``docs/progress.md`` explains the fields.
    """

    key: str
    shard: int
    share: float
    by_time: bool


@dataclass(frozen=True)
class PinnedKey:
    """A key that has a shard of its own, with its rows in the batch and whether it ever had rows or state."""

    key: str
    shard: int
    rows: int
    seen: bool


@dataclass(frozen=True)
class Region:
    """The decision for a region in a batch. Fields are None if the driver does not report them."""

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
    """Number of executors that its tasks run on."""
    homes: str | None = None
    """Why its shards have their home executors."""
    pinned_keys: tuple[PinnedKey, ...] = ()
    in_turn: str | None = None
    """Why its tasks run their shards in turn. None if they do not."""


@dataclass(frozen=True)
class Operator:
    """A stateful operator in a batch, with its input rows and the time that it spent on them."""

    operator: int
    name: str
    rows: int
    rows_ms: int


@dataclass(frozen=True)
class Batch:
    """A batch that has ended."""

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
    """Stateful operators of routed regions."""
    scaling: str | None = None
    """Reason for the number of executors."""


@dataclass(frozen=True)
class Shards:
    """The shards of a region in its newest batch. Each tuple has a value per shard, or per task if its name says so."""

    region: int
    batch: int
    tasks: int
    task_of: tuple[int, ...]
    rows: tuple[int, ...]
    busy_ns: tuple[int, ...]
    keys: tuple[int, ...]
    operations: tuple[int, ...]
    tasks_busy_ns: tuple[int, ...]
    """Busy time of each task without waiting, including time that belongs to no shard."""
    tasks_wait_ns: tuple[int, ...]
    """Time that each task waited for input."""
    operators: tuple[int, ...] = ()
    """Ids of the operators that have their state in these shards."""


@dataclass(frozen=True)
class Query:
    """A run of a query."""

    run_id: str
    name: str
    """Name of the query, or its id if it has no name."""
    ended: bool
    exception: str | None
    batches: tuple[Batch, ...]
    shards: tuple[Shards, ...]


@dataclass(frozen=True)
class Status:
    """The status of an application."""

    penstock: str
    spark: str
    application: str
    mode: str
    queries: tuple[Query, ...]


def fetch(url: str, batches: int, query: str | None = None) -> str:
    """Request the status of a driver.

    Parameters
    ----------
    url
        URL of Spark's UI on the driver, such as ``http://localhost:4040``.
    batches
        Number of newest batches of each run to request.
    query
        Id, run id or name of the query to request. None requests all queries.

    Returns
    -------
    str
        The status as JSON.

    Raises
    ------
    PenstockError
        ``PENSTOCK_INVALID_URL`` if the URL is not an HTTP URL; ``PENSTOCK_NO_STATUS`` if nothing answers there, or the
        application runs without Penstock.
    """
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise PenstockError(
            "PENSTOCK_INVALID_URL",
            f"{url} is not the URL of a Spark UI. Allowed: http://HOST:PORT or https://HOST:PORT.",
        )
    parameters = urllib.parse.urlencode({"batches": batches, **({"query": query} if query else {})})
    try:
        with urllib.request.urlopen(f"{url.rstrip('/')}/penstock/json/?{parameters}", timeout=TIMEOUT_S) as answer:  # noqa: S310 - checked
            text: str = answer.read().decode("utf-8")
    except urllib.error.HTTPError as error:
        why = (
            "the application runs without Penstock"
            if error.code == HTTPStatus.NOT_FOUND
            else f"it answered with {error}"
        )
        raise PenstockError("PENSTOCK_NO_STATUS", f"There is no Penstock status at {url}: {why}. {_REMEDY}") from error
    except (OSError, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise PenstockError("PENSTOCK_NO_STATUS", f"Nothing answers at {url}: {reason}. {_REMEDY}") from error
    return text


_REMEDY = (
    "Pass the URL of Spark's UI on the driver (SparkContext.uiWebUrl, usually with port 4040) of an application that "
    "has spark.plugins=io.penstock.PenstockPlugin and spark.ui.enabled=true."
)


def read(text: str) -> Status:
    """Parse the status of a driver.

    Raises
    ------
    PenstockError
        ``PENSTOCK_NO_STATUS`` if the text is not a status, or has another version.
    """
    try:
        document = printable_document(json.loads(text))
        version = document["version"]
        if version == VERSION:
            return _status(document)
    except (ValueError, KeyError, TypeError) as error:
        raise PenstockError(
            "PENSTOCK_NO_STATUS", f"The answer is not a status of Penstock: {error!r}. {_REMEDY}"
        ) from error
    raise PenstockError(
        "PENSTOCK_NO_STATUS",
        f"The application's status has version {version}, but this command reads version {VERSION}. Install the "
        "application's version of Penstock here.",
    )


def _status(document: dict[str, Any]) -> Status:
    return Status(
        document["penstock"],
        document["spark"],
        document["application"]["name"],
        document["mode"],
        tuple(map(_query, document["queries"])),
    )


def _query(run: dict[str, Any]) -> Query:
    return Query(
        run["runId"],
        run["name"] or run["id"],
        run["ended"],
        run["exception"],
        tuple(map(_batch, run["batches"])),
        tuple(map(_shards, run["regions"])),
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


def _heavy_key(key: dict[str, Any]) -> HeavyKey:
    busy_share = key.get("busyShare")
    share = key["rowsShare"] if busy_share is None else busy_share
    return HeavyKey(key["key"], key["shard"], share, by_time=busy_share is not None)


def _region(report: dict[str, Any]) -> Region:
    keys = map(_heavy_key, report.get("heavyKeys") or [])
    pinned_keys = report.get("pinnedKeys") or []
    return Region(
        region=report["region"],
        operators=report["operators"],
        routed=report["routed"],
        tasks=report["tasks"],
        tasks_reason=report.get("tasksReason"),
        before=report.get("imbalanceBefore"),
        expected=report.get("expectedImbalance"),
        achieved=report.get("achievedImbalance"),
        busy_ms=report.get("busyMs"),
        shards_moved=report.get("shardsMoved"),
        pinned=report.get("pinned") or 0,
        decision_micros=report.get("decisionMicros"),
        heavy_keys=tuple(keys),
        decision=report.get("decision") or report.get("reason") or "",
        executors=report.get("executors"),
        homes=report.get("homes"),
        pinned_keys=tuple(PinnedKey(k["key"], k["shard"], k["rows"], k["seen"]) for k in pinned_keys),
        in_turn=report.get("inTurn"),
    )


def _shards(region: dict[str, Any]) -> Shards:
    names = ("taskOf", "rows", "busyNs", "keys", "operations")
    arrays = {name: tuple(map(int, region[name])) for name in names}
    tasks = region["tasks"]
    if len({len(array) for array in arrays.values()}) != 1 or not all(0 <= t < tasks for t in arrays["taskOf"]):
        raise ValueError(f"the shards of region {region['region']} are inconsistent")
    busy_ns, wait_ns = (tuple(map(int, region[name])) for name in ("tasksBusyNs", "tasksWaitNs"))
    if any(len(array) != tasks for array in (busy_ns, wait_ns)):
        raise ValueError(f"the tasks of region {region['region']} are inconsistent")
    return Shards(
        region=region["region"],
        batch=region["batch"],
        tasks=tasks,
        task_of=arrays["taskOf"],
        rows=arrays["rows"],
        busy_ns=arrays["busyNs"],
        keys=arrays["keys"],
        operations=arrays["operations"],
        tasks_busy_ns=busy_ns,
        tasks_wait_ns=wait_ns,
        operators=tuple(o["operator"] for o in region.get("operators", [])),
    )
