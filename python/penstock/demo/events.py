"""Events that a run of the demonstration reports, each as a line of JSON."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar


@dataclass(frozen=True)
class Session:
    """The Spark session has started.

    Parameters
    ----------
    ui_url
        URL of Spark's UI.
    pieces
        Number of pieces to replay.
    """

    kind: ClassVar[str] = "session"
    ui_url: str
    pieces: int


@dataclass(frozen=True)
class Started:
    """The warm-up has ended.

    Parameters
    ----------
    at_s
        Time at which it ended, in seconds since the epoch.
    piece
        Number of the first piece that is replayed by the clock.
    """

    kind: ClassVar[str] = "started"
    at_s: float
    piece: int


@dataclass(frozen=True)
class Delivered:
    """A piece of the streams was delivered.

    Parameters
    ----------
    piece
        Number of the piece.
    at_s
        Time at which it was delivered, in seconds since the epoch.
    rows
        Number of its rows, by stream.
    """

    kind: ClassVar[str] = "delivered"
    piece: int
    at_s: float
    rows: Mapping[str, int]


@dataclass(frozen=True)
class Batch:
    """A batch has ended.

    Parameters
    ----------
    batch
        Number of the batch, from 0.
    end_s
        Time at which it ended, in seconds since the epoch.
    ms
        Duration of the batch in milliseconds.
    rows
        Number of its rows, by stream.
    """

    kind: ClassVar[str] = "batch"
    batch: int
    end_s: float
    ms: int
    rows: Mapping[str, int]


@dataclass(frozen=True)
class TaskLoads:
    """Load of the tasks of each batch, in the stage that read most shuffled rows. Reported at the end of the run.

    Parameters
    ----------
    tasks
        Number of tasks, by batch.
    imbalance
        Rows of the busiest task over the mean, by batch.
    """

    kind: ClassVar[str] = "task_loads"
    tasks: Mapping[str, int]
    imbalance: Mapping[str, float]


Event = Session | Started | Delivered | Batch | TaskLoads
_KINDS: dict[str, type[Event]] = {kind.kind: kind for kind in (Session, Started, Delivered, Batch, TaskLoads)}


def write(event: Event) -> str:
    """Return an event as a line of JSON, without a line break."""
    return json.dumps({"event": event.kind, **asdict(event)})


def read(line: str) -> Event:
    """Parse an event from a line of JSON."""
    document: dict[str, Any] = json.loads(line)
    kind = _KINDS[document.pop("event")]
    return kind(**{field.name: document[field.name] for field in fields(kind)})
