"""Measurements of a run, computed from its events."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from penstock.demo.events import Batch, Delivered, Event, Session, Started, TaskLoads


@dataclass
class Record:
    """The events of a run so far. Batches before the start of the clock are kept apart in ``warm_up``."""

    session: Session | None = None
    started: Started | None = None
    warm_up: list[Batch] = field(default_factory=list)
    delivered: list[Delivered] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)
    loads: TaskLoads | None = None

    def add(self, event: Event) -> None:
        """Add an event."""
        match event:
            case Session():
                self.session = event
            case Started():
                self.started = event
            case Delivered() if self.started:
                self.delivered.append(event)
            case Batch():
                (self.batches if self.started else self.warm_up).append(event)
            case TaskLoads():
                self.loads = event

    @property
    def working(self) -> list[Batch]:
        """Batches that had input."""
        return [batch for batch in self.batches if any(batch.rows.values())]

    @property
    def rows_per_second(self) -> float:
        """Rows per second from the start of the clock to the end of the last batch that had input."""
        working = self.working
        if not working or self.started is None:
            return 0.0
        return sum(sum(batch.rows.values()) for batch in working) / max(1e-3, working[-1].end_s - self.started.at_s)

    @property
    def batch_ms(self) -> NDArray[np.float64]:
        """Duration of each batch that had input, in milliseconds."""
        return np.array([batch.ms for batch in self.working], dtype=np.float64)

    @property
    def imbalance(self) -> float:
        """Rows of the busiest task over the mean: the median of all batches. NaN if no stage read a shuffle."""
        known = self.loads.imbalance if self.loads else {}
        values = [known[str(batch.batch)] for batch in self.working if str(batch.batch) in known]
        return float(np.median(values)) if values else float("nan")

    @property
    def tasks(self) -> int:
        """Number of tasks of the stage that read most shuffled rows: the median of all batches."""
        known = self.loads.tasks if self.loads else {}
        values = [known[str(batch.batch)] for batch in self.working if str(batch.batch) in known]
        return int(np.median(values)) if values else 0

    def latency_s(self, quantile: float) -> float:
        """Return the quantile of the time until rows were answered, in seconds. NaN if no row was answered."""
        waits = list(waited(self.delivered, self.batches))
        if not waits:
            return float("nan")
        rows, seconds = (np.array(column) for column in zip(*((w.rows, w.seconds) for w in waits), strict=True))
        order = np.argsort(seconds, kind="stable")
        reached = np.searchsorted(np.cumsum(rows[order]), quantile * rows.sum())
        return float(seconds[order][min(int(reached), len(seconds) - 1)])


@dataclass(frozen=True)
class Waited:
    """Rows of a piece, and how long they waited for the end of the batch that processed them.

    Parameters
    ----------
    at_s
        Time at which the rows were delivered, in seconds since the epoch.
    seconds
        Time from their delivery to the end of their batch, in seconds.
    rows
        Number of rows.
    """

    at_s: float
    seconds: float
    rows: int


def waited(delivered: list[Delivered], batches: list[Batch]) -> Iterator[Waited]:
    """Compute how long the rows of each piece waited. Sources read pieces in order, and never a part of a file."""
    taken: dict[str, int] = defaultdict(int)
    ends: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for batch in batches:
        for stream, rows in batch.rows.items():
            taken[stream] += rows
            ends[stream].append((taken[stream], batch.end_s))
    received: dict[str, int] = defaultdict(int)
    position: dict[str, int] = defaultdict(int)
    for piece in delivered:
        for stream, rows in piece.rows.items():
            received[stream] += rows
            while position[stream] < len(ends[stream]) and ends[stream][position[stream]][0] < received[stream]:
                position[stream] += 1
            if rows and position[stream] < len(ends[stream]):
                yield Waited(piece.at_s, max(0.0, ends[stream][position[stream]][1] - piece.at_s), rows)
