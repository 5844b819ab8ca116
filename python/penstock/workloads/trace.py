"""Traces: rows with a time, a key and optionally cost and state size, from a Parquet or CSV file, cut into batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from penstock.api.errors import PenstockError
from penstock.planning.load import Loads, loads
from penstock.planning.policies import Batch
from penstock.planning.spark_hash import Hashes, hash_ints, hash_longs, hash_strings

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Columns:
    """Names of a trace's columns. The last two are optional.

    Parameters
    ----------
    time
        Column with ascending times: timestamps or numbers of seconds.
    key
        Column with keys: integers or strings.
    cost
        Column with the cost of each row, in any unit. Without it, each row costs 1.
    state
        Column with the bytes of the key's state after the row. Without it, the size is the key's number of rows so far.
    """

    time: str = "time"
    key: str = "key"
    cost: str | None = None
    state: str | None = None


@dataclass(frozen=True)
class Trace:
    """Rows, sorted by time.

    Parameters
    ----------
    time_s
        Time of each row in seconds, shape ``(rows,)``.
    key
        Number of each row's key, from 0.
    cost
        Cost of each row.
    state_bytes
        Bytes of the state of each row's key after the row. None if they are unknown.
    hashes
        Spark's hash of each key, shape ``(keys,)``.
    rows
        Number of rows of the query that each row represents. None if each represents one.
    """

    time_s: NDArray[np.float64]
    key: NDArray[np.int64]
    cost: Loads
    state_bytes: Loads | None
    hashes: Hashes
    rows: Loads | None = None

    @property
    def cost_by_key(self) -> Loads:
        """Cost of each key over the whole trace, shape ``(keys,)``."""
        return loads(self.key, self.cost, len(self.hashes))

    def batch_count(self, interval_s: float) -> int:
        """Return the number of batches that `batches` yields."""
        return len(self._bounds(interval_s)) - 1 if len(self.time_s) else 0

    def _bounds(self, interval_s: float) -> list[int]:
        number = np.floor((self.time_s - self.time_s[0]) / interval_s) if len(self.time_s) else self.time_s
        return [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(number)]

    def batches(self, interval_s: float) -> Iterator[Batch]:
        """Yield the batches of intervals of this length. Intervals without rows have no batch."""
        memory: Loads = np.zeros(len(self.hashes))
        for start, end in pairwise(self._bounds(interval_s)):
            if start == end:
                continue
            key = self.key[start:end]
            rows = None if self.rows is None else self.rows[start:end]
            if self.state_bytes is None:
                memory = memory + np.bincount(key, rows, len(memory))
            else:
                memory = memory.copy()
                memory[key] = self.state_bytes[start:end]
            yield Batch(key, self.cost[start:end], memory, rows)


def read(path: Path, columns: Columns) -> Trace:
    """Read a trace.

    Raises
    ------
    PenstockError
        ``PENSTOCK_BAD_TRACE`` if the file is neither Parquet nor CSV, a column is missing or has a type that is not
        supported, values are empty or negative, or times are not ascending.
    """
    return of_table(_table(path), columns, path)


def of_table(table: pa.Table, columns: Columns, path: Path) -> Trace:
    """Convert a table to a trace. Errors are the same as for `read` and name ``path``."""
    named = {"time": columns.time, "key": columns.key, "cost": columns.cost, "state": columns.state}
    for option, name in named.items():
        if name is not None and name not in table.column_names:
            have = ", ".join(table.column_names)
            raise _bad(
                path,
                f"the trace has no column {name} (--{option}); its columns are {have}. Set --{option} to one of them",
            )
        if name is not None and table[name].null_count:
            raise _bad(path, f"column {name} is empty in {table[name].null_count} rows; remove these rows")
    time_s = _times(path, table[columns.time], columns.time)
    key, hashes = _keys(path, table[columns.key], columns.key)
    cost = np.ones(len(time_s)) if columns.cost is None else _numbers(path, table[columns.cost], columns.cost)
    state = None if columns.state is None else _numbers(path, table[columns.state], columns.state)
    return Trace(time_s, key, cost, state, hashes)


def _table(path: Path) -> Any:
    import pyarrow as pa  # noqa: PLC0415, only commands that read traces need it
    import pyarrow.csv  # noqa: PLC0415
    import pyarrow.parquet  # noqa: PLC0415

    try:
        return pa.csv.read_csv(path) if path.suffix == ".csv" else pa.parquet.read_table(path)
    except FileNotFoundError as error:
        raise _bad(path, "the file does not exist") from error
    except pa.ArrowInvalid as error:
        raise _bad(path, f"the file is not a Parquet file; a CSV file must be named .csv: {error}") from error


def _times(path: Path, column: Any, name: str) -> NDArray[np.float64]:
    import pyarrow as pa  # noqa: PLC0415

    if pa.types.is_timestamp(column.type):
        values = column.cast(pa.timestamp("us")).cast(pa.int64()).to_numpy() / 1e6
    elif pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        values = column.to_numpy().astype(np.float64)
    else:
        raise _bad(path, f"column {name} is of type {column.type}; a time must be a timestamp or a number of seconds")
    unknown = np.flatnonzero(~np.isfinite(values))
    if len(unknown):
        raise _bad(path, f"row {int(unknown[0])} has no time ({name}); remove such rows")
    backwards = np.flatnonzero(np.diff(values) < 0)
    if len(backwards):
        row = int(backwards[0]) + 1
        raise _bad(path, f"row {row} is earlier than the one before it ({name}); sort the trace by time")
    return np.asarray(values, dtype=np.float64)


def _keys(path: Path, column: Any, name: str) -> tuple[NDArray[np.int64], Hashes]:
    import pyarrow as pa  # noqa: PLC0415

    encoded = column.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    key = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    distinct = encoded.dictionary
    if pa.types.is_int64(distinct.type) or pa.types.is_uint64(distinct.type):
        return key, hash_longs(distinct.to_numpy().astype(np.int64))
    if pa.types.is_integer(distinct.type):
        return key, hash_ints(distinct.to_numpy().astype(np.int32))
    if pa.types.is_string(distinct.type) or pa.types.is_large_string(distinct.type):
        strings = distinct.cast(pa.large_string())
        _, offsets, data = strings.buffers()
        starts = np.frombuffer(offsets, dtype=np.int64)[strings.offset : strings.offset + len(strings) + 1]
        return key, hash_strings(starts, np.frombuffer(data or b"", dtype=np.uint8))
    raise _bad(path, f"column {name} is of type {distinct.type}; a key must be an integer or a string")


def _numbers(path: Path, column: Any, name: str) -> Loads:
    import pyarrow as pa  # noqa: PLC0415

    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise _bad(path, f"column {name} is of type {column.type}, and must be a number")
    values = column.to_numpy().astype(np.float64)
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(wrong):
        raise _bad(path, f"column {name} is {values[wrong[0]]} in row {wrong[0]}, and must be 0 or more")
    return np.asarray(values, dtype=np.float64)


def _bad(path: Path, problem: str) -> PenstockError:
    return PenstockError("PENSTOCK_BAD_TRACE", f"{path}: {problem}.")
