"""Read Spark's event logs as traces: the time of each state partition of a streaming query in each batch."""

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
"""Supported compression codecs, by the suffix of the file name."""
OTHER_CODECS = (".lz4", ".lzf", ".snappy")
"""Suffixes of files that Spark compresses in formats of its own, which other programs cannot read."""
_ROLLED = re.compile(r"events_(\d+)_")


@dataclass
class _Stage:
    """Successful tasks of a stage, by partition: run time in ms, and number of rows read from a shuffle."""

    tasks: dict[int, tuple[float, float]] = field(default_factory=dict)

    @property
    def rows(self) -> float:
        return sum(rows for _, rows in self.tasks.values())


@dataclass
class _Log:
    """The relevant content of an event log."""

    stages: dict[int, _Stage] = field(default_factory=lambda: defaultdict(_Stage))
    batch_of: dict[int, tuple[str, int]] = field(default_factory=dict)
    """Query and batch of each stage."""
    shards: dict[tuple[str, int], int] = field(default_factory=dict)
    """Number of state partitions of each query and batch, from its progress. 0 if Penstock does not keep the state."""
    binds: bool = False
    """Whether the application runs Penstock in a mode in which tasks run several partitions."""

    def by_query(self) -> dict[str, dict[int, _Stage]]:
        """Return for each query and batch the stage that read most rows from a shuffle."""
        found: dict[str, dict[int, _Stage]] = defaultdict(dict)
        for number, (query, batch) in self.batch_of.items():
            stage = self.stages.get(number)
            if stage and stage.rows > found[query].get(batch, _Stage()).rows:
                found[query][batch] = stage
        return {query: batches for query, batches in found.items() if batches}

    def is_bound(self, query: str, batches: dict[int, _Stage]) -> bool:
        """Return whether tasks of a query ran several partitions each."""
        known = {batch: shards for (owner, batch), shards in self.shards.items() if owner == query}
        if not known:
            return self.binds
        return any(len(batches[batch].tasks) < shards for batch, shards in known.items() if batch in batches)


def is_event_log(path: Path) -> bool:
    """Return whether a path looks like an event log: a folder of rolled files, or a file that begins with an event."""
    if path.is_dir() or path.suffix in (*CODECS, *OTHER_CODECS):
        return True
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(9) == b'{"Event":'


def read(path: Path, query: str | None = None) -> Trace:
    """Read the tasks of a query as a trace: a row for each state partition and batch, whose cost is the task's time.

    In each batch, the stage that read most rows from a shuffle counts. The log does not contain keys, so each partition
    takes the place of a key, and policies can place partitions only. Its cost includes the fixed cost of a task. If
    Penstock's tasks ran several partitions, their single times are not in the log, and this is an error.

    Parameters
    ----------
    path
        Event log file, or the folder ``eventlog_v2_*`` of an application. Files are plain or compressed with zstd.
    query
        Id of the query. It may be None if the log has only one.

    Raises
    ------
    PenstockError
        ``PENSTOCK_BAD_TRACE`` if the path is not an event log, no query in it reads a shuffle, the query is not in it,
        it has several queries and none was named, or Penstock's tasks ran several partitions of the query.
    """
    log = _read(path)
    by_query = log.by_query()
    if not by_query:
        raise _bad(
            path,
            "no task of a streaming query has read a shuffle in this event log. Take the log of an application that "
            "ran a stateful query",
        )
    have = ", ".join(sorted(by_query))
    if query is None and len(by_query) > 1:
        raise _bad(path, f"the event log has several queries, {have}; choose one with --query")
    if query is not None and query not in by_query:
        raise _bad(path, f"the event log has no query {query} (--query); it has {have}")
    chosen = query or next(iter(by_query))
    batches = by_query[chosen]
    if log.is_bound(chosen, batches):
        raise _bad(
            path,
            "the query ran under Penstock, whose tasks ran several state partitions each, so the log does not contain "
            "the time of a single partition. Take the log of a run with spark.penstock.mode=observe, which has a task "
            "for each partition, or use a trace of the query's keys",
        )
    rows = [
        (number, partition, *batches[batch].tasks[partition])
        for number, batch in enumerate(sorted(batches))
        for partition in sorted(batches[batch].tasks)
    ]
    number, partition, time_ms, read_rows = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    keys = int(partition.max()) + 1
    # The hash of partition p is p: as in Spark, p modulo the number of tasks is then its task.
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
            partition = task.get("Partition ID", task["Index"])
            log.stages[event["Stage ID"]].tasks[partition] = (
                float(metrics.get("Executor Run Time", 0)),
                float(read_rows),
            )
        elif kind == "SparkListenerEnvironmentUpdate":
            conf = dict(event.get("Spark Properties") or [])
            plugins = [name.strip() for name in conf.get("spark.plugins", "").split(",")]
            log.binds = PLUGIN in plugins and conf.get("spark.penstock.mode", "on").lower() == "on"
        elif kind == PROGRESS:
            progress = event["progress"]
            partitions = [o["numShufflePartitions"] for o in progress.get("stateOperators") or [] if _is_ours(o)]
            # A query without new data reports its newest batch again, without addBatch.
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
                # The last line may be incomplete, if the application is still running or was killed.
                if number + 1 == len(lines):
                    continue
                event = None
            if not isinstance(event, dict) or "Event" not in event:
                raise _bad(path, f"line {number + 1} of {file.name} is not an event of Spark")
            yield event


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    numbered = [(int(m[1]), file) for file in path.iterdir() if (m := _ROLLED.match(file.name))]
    if not numbered:
        raise _bad(path, "the folder has no files events_*; name the folder eventlog_v2_* of one application")
    return [file for _, file in sorted(numbered)]


def _lines(path: Path, file: Path) -> Sequence[str]:
    import pyarrow as pa  # noqa: PLC0415, only commands that read traces need it

    name = Path(file.name.removesuffix(".inprogress"))
    if name.suffix in OTHER_CODECS:
        raise _bad(
            path,
            f"{file.name} is compressed in a format that only Spark reads; write the log with "
            "spark.eventLog.compression.codec=zstd",
        )
    try:
        with pa.input_stream(str(file), compression=CODECS.get(name.suffix)) as stream:
            text: str = stream.read().decode("utf-8")
    except FileNotFoundError as error:
        raise _bad(path, "the file does not exist") from error
    except (OSError, UnicodeDecodeError) as error:
        raise _bad(path, f"{file.name} cannot be read: {error}") from error
    return text.splitlines()


def _bad(path: Path, problem: str) -> PenstockError:
    return PenstockError("PENSTOCK_BAD_TRACE", f"{path}: {problem}.")
