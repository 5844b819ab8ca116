"""Spark's event logs as traces: what the state partitions of a streaming query took, batch by batch."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from penstock.api.errors import PenstockError
from penstock.api.queries import PLUGIN
from penstock.workloads.trace import Trace

PROGRESS = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"
QUERY = "sql.streaming.queryId"
BATCH = "streaming.sql.batchId"
CODECS = {".zstd": "zstd", ".zst": "zstd"}
"""By the end of a file's name, where a codec of Spark's is one that others can read."""
OTHER_CODECS = (".lz4", ".lzf", ".snappy")
_ROLLED = re.compile(r"events_(\d+)_")


@dataclass
class _Stage:
    """Successful tasks of a stage, by partition: milliseconds and rows that they read from a shuffle."""

    tasks: dict[int, tuple[float, float]] = field(default_factory=dict)

    @property
    def rows(self) -> float:
        return sum(rows for _, rows in self.tasks.values())


@dataclass
class _Log:
    """What of a log is read."""

    stages: dict[int, _Stage] = field(default_factory=lambda: defaultdict(_Stage))
    batch_of: dict[int, tuple[str, int]] = field(default_factory=dict)
    """Query and batch of a stage."""
    shards: dict[tuple[str, int], int] = field(default_factory=dict)
    """State partitions of a query's batch, as its progress tells them; 0 where they are not Penstock's."""
    binds: bool = False
    """Whether the application has the plugin in a mode in which tasks run several partitions."""

    def by_query(self) -> dict[str, dict[int, _Stage]]:
        """Find the stage of each query and batch that read most rows."""
        found: dict[str, dict[int, _Stage]] = defaultdict(dict)
        for number, (query, batch) in self.batch_of.items():
            stage = self.stages.get(number)
            if stage and stage.rows > found[query].get(batch, _Stage()).rows:
                found[query][batch] = stage
        return {query: batches for query, batches in found.items() if batches}

    def is_bound(self, query: str, batches: dict[int, _Stage]) -> bool:
        """Say whether tasks of a query ran several partitions each."""
        known = {batch: shards for (of, batch), shards in self.shards.items() if of == query}
        if not known:
            return self.binds
        return any(len(batches[batch].tasks) < shards for batch, shards in known.items() if batch in batches)


def is_event_log(path: Path) -> bool:
    """Say whether a path looks like an event log: a folder of rolled files, or a file that begins with an event."""
    if path.is_dir() or path.suffix in (*CODECS, *OTHER_CODECS):
        return True
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(9) == b'{"Event":'


def read(path: Path, query: str | None = None) -> Trace:
    """Read the tasks of a query: a row for each state partition and batch, with the task's time as its cost.

    Of each batch the stage counts that read most rows from a shuffle. A partition stands for its keys: the log does not
    know these, so that policies can place partitions only. Its time includes what every task takes. A run under
    Penstock is refused where its tasks ran several partitions: how long each of them took is not in the log.

    Parameters
    ----------
    path
        A file, or the folder ``eventlog_v2_*`` of an application; plain or compressed by zstd.
    query
        Id of the query; needed where the log has several.

    Raises
    ------
    PenstockError
        ``PENSTOCK_BAD_TRACE`` where that is no event log, has no batch of a query that reads a shuffle, has several
        queries and none was named, does not have the one that was named, or has one whose tasks Penstock has bound.
    """
    log = _read(path)
    by_query = log.by_query()
    if not by_query:
        raise _bad(path, "no task of a streaming query in it has read a shuffle; is it of another application?")
    have = ", ".join(sorted(by_query))
    if query is None and len(by_query) > 1:
        raise _bad(path, f"it has several queries, {have}; choose one with --query")
    if query is not None and query not in by_query:
        raise _bad(path, f"it has no query {query} (--query); it has {have}")
    chosen = query or next(iter(by_query))
    batches = by_query[chosen]
    if log.is_bound(chosen, batches):
        raise _bad(
            path,
            "it is of a run under Penstock, whose tasks ran several state partitions each: what one of them took is "
            "not in it. Take the log of a run with spark.penstock.mode=observe, which has a task for each, or a trace "
            "of the query's keys",
        )
    rows = [
        (number, partition, *batches[batch].tasks[partition])
        for number, batch in enumerate(sorted(batches))
        for partition in sorted(batches[batch].tasks)
    ]
    number, partition, time_ms, read_rows = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    keys = int(partition.max()) + 1
    # As in Spark: partition p is task p modulo the number of tasks.
    return Trace(number, partition.astype(np.int64), time_ms, None, np.arange(keys, dtype=np.int32), read_rows)


def _read(path: Path) -> _Log:
    log = _Log()
    for event in _events(path):
        kind = event["Event"]
        if kind == "SparkListenerJobStart":
            properties = event.get("Properties") or {}
            if QUERY in properties and BATCH in properties:
                for stage in event["Stage IDs"]:
                    log.batch_of[stage] = properties[QUERY], int(properties[BATCH])
        elif kind == "SparkListenerTaskEnd" and event["Task End Reason"]["Reason"] == "Success":
            metrics, task = event.get("Task Metrics") or {}, event["Task Info"]
            read_rows = (metrics.get("Shuffle Read Metrics") or {}).get("Total Records Read", 0)
            at = task.get("Partition ID", task["Index"])
            log.stages[event["Stage ID"]].tasks[at] = float(metrics.get("Executor Run Time", 0)), float(read_rows)
        elif kind == "SparkListenerEnvironmentUpdate":
            conf = dict(event.get("Spark Properties") or [])
            plugins = [name.strip() for name in conf.get("spark.plugins", "").split(",")]
            log.binds = PLUGIN in plugins and conf.get("spark.penstock.mode", "on").lower() == "on"
        elif kind == PROGRESS:
            progress = event["progress"]
            partitions = [o["numShufflePartitions"] for o in progress.get("stateOperators") or [] if _is_ours(o)]
            # A query that waits repeats its newest batch.
            if "addBatch" in (progress.get("durationMs") or {}):
                log.shards[progress["id"], progress["batchId"]] = max(partitions, default=0)
    return log


def _is_ours(operator: dict[str, Any]) -> bool:
    return any(name.startswith("penstock") for name in operator.get("customMetrics") or {})


def _events(path: Path) -> Iterator[dict[str, Any]]:
    for file in _files(path):
        lines = _lines(path, file)
        for number, line in enumerate(lines):
            try:
                event = json.loads(line)
            except json.JSONDecodeError:
                # An application that runs, or was killed, leaves its last line as far as it came.
                if number + 1 == len(lines):
                    continue
                event = None
            if not isinstance(event, dict) or "Event" not in event:
                raise _bad(path, f"line {number + 1} of {file.name} is no event of Spark's")
            yield event


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    numbered = [(int(m[1]), file) for file in path.iterdir() if (m := _ROLLED.match(file.name))]
    if not numbered:
        raise _bad(path, "it is a folder without files events_*; name the folder eventlog_v2_* of one application")
    return [file for _, file in sorted(numbered)]


def _lines(path: Path, file: Path) -> Sequence[str]:
    import pyarrow as pa  # noqa: PLC0415, only commands that read traces need it

    name = Path(file.name.removesuffix(".inprogress"))
    if name.suffix in OTHER_CODECS:
        raise _bad(
            path, f"{file.name} is compressed in a way of Spark's own; set spark.eventLog.compression.codec=zstd"
        )
    try:
        with pa.input_stream(str(file), compression=CODECS.get(name.suffix)) as stream:
            text: str = stream.read().decode("utf-8")
    except FileNotFoundError as error:
        raise _bad(path, "there is no such file") from error
    except (OSError, UnicodeDecodeError) as error:
        raise _bad(path, f"{file.name} cannot be read: {error}") from error
    return text.splitlines()


def _bad(path: Path, what: str) -> PenstockError:
    return PenstockError("PENSTOCK_BAD_TRACE", f"{path}: {what}.")
