"""What a run measured, out of what it told."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from penstock.demo.events import Batch, Delivered, Event, Session, Started, TaskLoads


@dataclass
class Record:
    """A run as far as it has come; of what was before the clock started, only the session is in it."""

    session: Session | None = None
    started: Started | None = None
    warm_up: list[Batch] = field(default_factory=list)
    delivered: list[Delivered] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)
    loads: TaskLoads | None = None

    def add(self, event: Event) -> None:
        """Note an event."""
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
        """The batches that had input."""
        return [batch for batch in self.batches if any(batch.rows.values())]

    @property
    def rows_per_second(self) -> float:
        """Rows from the start of the clock to the end of the last batch that had input, over that time."""
        working = self.working
        if not working or self.started is None:
            return 0.0
        return sum(sum(batch.rows.values()) for batch in working) / max(1e-3, working[-1].end_s - self.started.at_s)

    @property
    def batch_ms(self) -> NDArray[np.float64]:
        """Milliseconds of each batch that had input."""
        return np.array([batch.ms for batch in self.working], dtype=np.float64)

    @property
    def imbalance(self) -> float:
        """Rows of the busiest task over the mean, the median of batches; NaN where no stage read a shuffle."""
        known = self.loads.imbalance if self.loads else {}
        values = [known[str(batch.batch)] for batch in self.working if str(batch.batch) in known]
        return float(np.median(values)) if values else float("nan")

    @property
    def tasks(self) -> int:
        """Of the stage that read most, the median of batches."""
        known = self.loads.tasks if self.loads else {}
        values = [known[str(batch.batch)] for batch in self.working if str(batch.batch) in known]
        return int(np.median(values)) if values else 0

    def latency_s(self, quantile: float) -> float:
        """Give the time within which so many of the rows were answered; NaN where none was."""
        waits = list(waited(self.delivered, self.batches))
        if not waits:
            return float("nan")
        rows, seconds = (np.array(column) for column in zip(*((w.rows, w.seconds) for w in waits), strict=True))
        order = np.argsort(seconds, kind="stable")
        reached = np.searchsorted(np.cumsum(rows[order]), quantile * rows.sum())
        return float(seconds[order][min(int(reached), len(seconds) - 1)])


@dataclass(frozen=True)
class Waited:
    """Rows of a piece and how long they waited for the end of the batch that took them.

    Parameters
    ----------
    at_s
        When they were delivered, in seconds since the epoch.
    seconds
        From there to the batch's end.
    rows
        How many.
    """

    at_s: float
    seconds: float
    rows: int


def waited(delivered: list[Delivered], batches: list[Batch]) -> Iterator[Waited]:
    """Find for the rows of each delivery when they were answered; a source takes its files whole and in order."""
    taken: dict[str, int] = defaultdict(int)
    ends: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for batch in batches:
        for stream, rows in batch.rows.items():
            taken[stream] += rows
            ends[stream].append((taken[stream], batch.end_s))
    came: dict[str, int] = defaultdict(int)
    at: dict[str, int] = defaultdict(int)
    for piece in delivered:
        for stream, rows in piece.rows.items():
            came[stream] += rows
            while at[stream] < len(ends[stream]) and ends[stream][at[stream]][0] < came[stream]:
                at[stream] += 1
            if rows and at[stream] < len(ends[stream]):
                yield Waited(piece.at_s, max(0.0, ends[stream][at[stream]][1] - piece.at_s), rows)
