"""Replay recorded streams by event time, so that their rate of rows changes as it did when they were recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.workloads.feeds import Feed
from penstock.workloads.questions.question import TIME


@dataclass(frozen=True)
class Delivery:
    """The delivery of a piece of all streams to a query.

    Parameters
    ----------
    piece
        Number of the piece, from 0.
    at_s
        Time of the delivery, in seconds since the epoch.
    rows
        Number of rows, by stream.
    """

    piece: int
    at_s: float
    rows: Mapping[str, int]


def cut(streams: Mapping[str, pa.Table], span: timedelta, pieces: int, folder: Path) -> None:
    """Cut streams into pieces of equal event time, and write them as ``folder/STREAM/NNNNN.parquet``.

    Parameters
    ----------
    streams
        Tables, each sorted by its column `TIME`.
    span
        Event time to cut, from the first row of all streams. Later rows are dropped.
    pieces
        Number of pieces.
    folder
        Folder for the pieces. It is created if it does not exist.
    """
    times = {name: table[TIME].cast(pa.int64()).to_numpy() for name, table in streams.items()}
    start = min(int(time_us[0]) for time_us in times.values())
    bounds = start + np.arange(pieces + 1) * (span / timedelta(microseconds=1) / pieces)
    for name, table in streams.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        rows = np.searchsorted(times[name], bounds).tolist()
        for piece in range(pieces):
            part = table.slice(rows[piece], rows[piece + 1] - rows[piece])
            pq.write_table(part, folder / name / f"{piece:05d}.parquet")


def pieces_of(folder: Path) -> Mapping[str, Sequence[Path]]:
    """Return the files that :func:`cut` wrote, in order, by stream."""
    return {stream.name: sorted(stream.glob("*.parquet")) for stream in sorted(folder.iterdir())}


class Replay:
    """Delivers the pieces of all streams to a feed, each at its time."""

    def __init__(
        self, cut_into: Mapping[str, Sequence[Path]], feed: Feed, on_delivery: Callable[[Delivery], None]
    ) -> None:
        """Create a replay. Nothing is delivered yet.

        Parameters
        ----------
        cut_into
            Files of the pieces, by stream.
        feed
            Feed that receives the pieces.
        on_delivery
            Function that is called after each piece.
        """
        self._streams, self._feed, self._on_delivery = cut_into, feed, on_delivery
        self.pieces = min(len(files) for files in cut_into.values())

    def deliver(self, piece: int) -> None:
        """Deliver one piece of every stream."""
        for name, files in self._streams.items():
            self._feed.put(name, files[piece])
        rows = {name: pq.ParquetFile(files[piece]).metadata.num_rows for name, files in self._streams.items()}
        self._on_delivery(Delivery(piece, time.time(), rows))

    def start(self, first: int, seconds: float) -> Future[None]:
        """Deliver all pieces from ``first`` on, evenly distributed over ``seconds``.

        Returns
        -------
        Future
            Done after the last piece, or with an error if a piece cannot be delivered.
        """
        thread = ThreadPoolExecutor(1, "replay")
        delivered = thread.submit(self._play, first, seconds)
        thread.shutdown(wait=False)
        return delivered

    def _play(self, first: int, seconds: float) -> None:
        start, each = time.monotonic(), seconds / max(1, self.pieces - first)
        for piece in range(first, self.pieces):
            time.sleep(max(0.0, start + (piece - first) * each - time.monotonic()))
            self.deliver(piece)
