"""Recorded streams, replayed by event time through files: as many rows a second as there were at that time of day."""

import shutil
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

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


class Replay:
    """Puts pieces where a query looks for files, each at its time."""

    def __init__(self, cut_into: Path, source: Path, told: Callable[[Delivery], None]) -> None:
        """Begin with nothing.

        Parameters
        ----------
        cut_into
            Folder that :func:`cut` wrote.
        source
            Folder that the query reads; has a folder for each stream after this.
        told
            Is called after each piece.
        """
        self._source, self._told = source, told
        self._streams = {folder.name: sorted(folder.glob("*.parquet")) for folder in sorted(cut_into.iterdir())}
        self.pieces = min(len(files) for files in self._streams.values())
        for name in self._streams:
            (source / name).mkdir(parents=True)

    def deliver(self, piece: int) -> None:
        """Make a piece visible, whole."""
        rows = {}
        for name, files in self._streams.items():
            hidden = self._source / name / f".{files[piece].name}"
            # Not linked: sources take files in the order of the times at which they were made.
            shutil.copyfile(files[piece], hidden)
            hidden.replace(self._source / name / files[piece].name)
            rows[name] = pq.ParquetFile(files[piece]).metadata.num_rows
        self._told(Delivery(piece, time.time(), rows))

    def start(self, first: int, seconds: float) -> threading.Thread:
        """Deliver all pieces from one on, evenly over so much time."""
        thread = threading.Thread(target=self._play, args=(first, seconds), name="replay", daemon=True)
        thread.start()
        return thread

    def _play(self, first: int, seconds: float) -> None:
        start, each = time.monotonic(), seconds / max(1, self.pieces - first)
        for piece in range(first, self.pieces):
            time.sleep(max(0.0, start + (piece - first) * each - time.monotonic()))
            self.deliver(piece)
