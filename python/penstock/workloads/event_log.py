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
from penstock.workloads.trace import Trace

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
    know these, so that policies can place partitions only. Its time includes what every task takes.

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
        queries and none was named, or does not have the one that was named.
    """
    by_query = _stages(path)
    if not by_query:
        raise _bad(path, "no task of a streaming query in it has read a shuffle; is it of another application?")
    have = ", ".join(sorted(by_query))
    if query is None and len(by_query) > 1:
        raise _bad(path, f"it has several queries, {have}; choose one with --query")
    if query is not None and query not in by_query:
        raise _bad(path, f"it has no query {query} (--query); it has {have}")
    batches = by_query[query or next(iter(by_query))]
    rows = [
        (number, partition, *batches[batch].tasks[partition])
        for number, batch in enumerate(sorted(batches))
        for partition in sorted(batches[batch].tasks)
    ]
    number, partition, time_ms, read_rows = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    keys = int(partition.max()) + 1
    # As in Spark: partition p is task p modulo the number of tasks.
    return Trace(number, partition.astype(np.int64), time_ms, None, np.arange(keys, dtype=np.int32), read_rows)


def _stages(path: Path) -> dict[str, dict[int, _Stage]]:
    """Find the stage of each query and batch that read most rows."""
    batch_of: dict[int, tuple[str, int]] = {}
    stages: dict[int, _Stage] = defaultdict(_Stage)
    for event in _events(path):
        if event["Event"] == "SparkListenerJobStart":
            properties = event.get("Properties") or {}
            if QUERY in properties and BATCH in properties:
                for stage in event["Stage IDs"]:
                    batch_of[stage] = properties[QUERY], int(properties[BATCH])
        elif event["Event"] == "SparkListenerTaskEnd" and event["Task End Reason"]["Reason"] == "Success":
            metrics, task = event.get("Task Metrics") or {}, event["Task Info"]
            read_rows = (metrics.get("Shuffle Read Metrics") or {}).get("Total Records Read", 0)
            at = task.get("Partition ID", task["Index"])
            stages[event["Stage ID"]].tasks[at] = float(metrics.get("Executor Run Time", 0)), float(read_rows)
    by_query: dict[str, dict[int, _Stage]] = defaultdict(dict)
    for stage, (query, batch) in batch_of.items():
        found = stages.get(stage)
        if found and found.rows > by_query[query].get(batch, _Stage()).rows:
            by_query[query][batch] = found
    return {query: batches for query, batches in by_query.items() if batches}


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
