"""Recorded streams, replayed by event time: as many rows a second as there were at that time of day."""

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
    """A piece of all streams that a query can now see.

    Parameters
    ----------
    piece
        Its number, from 0.
    at_s
        When, in seconds since the epoch.
    rows
        Of each stream.
    """

    piece: int
    at_s: float
    rows: Mapping[str, int]


def cut(streams: Mapping[str, pa.Table], span: timedelta, pieces: int, folder: Path) -> None:
    """Write streams as pieces of equal event time: ``folder/STREAM/NNNNN.parquet``.

    Parameters
    ----------
    streams
        Tables in the order of their column `TIME`.
    span
        How much event time, from the first row of all streams on; what comes later is left out.
    pieces
        How many.
    folder
        Made if need be.
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
    """Find what :func:`cut` wrote: by stream, its files in order."""
    return {stream.name: sorted(stream.glob("*.parquet")) for stream in sorted(folder.iterdir())}


class Replay:
    """Gives a feed the pieces of all streams, each at its time."""

    def __init__(self, cut_into: Mapping[str, Sequence[Path]], feed: Feed, told: Callable[[Delivery], None]) -> None:
        """Begin with nothing.

        Parameters
        ----------
        cut_into
            The pieces of each stream.
        feed
            Takes them.
        told
            Is called after each piece.
        """
        self._streams, self._feed, self._told = cut_into, feed, told
        self.pieces = min(len(files) for files in cut_into.values())

    def deliver(self, piece: int) -> None:
        """Make a piece of every stream visible."""
        for name, files in self._streams.items():
            self._feed.put(name, files[piece])
        rows = {name: pq.ParquetFile(files[piece]).metadata.num_rows for name, files in self._streams.items()}
        self._told(Delivery(piece, time.time(), rows))

    def start(self, first: int, seconds: float) -> Future[None]:
        """Deliver all pieces from one on, evenly over so much time.

        Returns
        -------
        Future
            Done after the last, or with the error of a piece that could not be delivered.
        """
        alone = ThreadPoolExecutor(1, "replay")
        delivered = alone.submit(self._play, first, seconds)
        alone.shutdown(wait=False)
        return delivered

    def _play(self, first: int, seconds: float) -> None:
        start, each = time.monotonic(), seconds / max(1, self.pieces - first)
        for piece in range(first, self.pieces):
            time.sleep(max(0.0, start + (piece - first) * each - time.monotonic()))
            self.deliver(piece)
