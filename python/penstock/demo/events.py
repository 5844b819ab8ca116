"""What a run tells while it runs, a line of JSON each."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar


@dataclass(frozen=True)
class Session:
    """The session is there.

    Parameters
    ----------
    ui_url
        Of Spark's UI.
    pieces
        How many there are to replay.
    """

    kind: ClassVar[str] = "session"
    ui_url: str
    pieces: int


@dataclass(frozen=True)
class Started:
    """The warm-up is over.

    Parameters
    ----------
    at_s
        When, in seconds since the epoch.
    piece
        The first that is replayed by the clock.
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
        Its number.
    at_s
        When, in seconds since the epoch.
    rows
        Of each stream.
    """

    kind: ClassVar[str] = "delivered"
    piece: int
    at_s: float
    rows: Mapping[str, int]


@dataclass(frozen=True)
class Batch:
    """A micro-batch has ended.

    Parameters
    ----------
    batch
        Its number, from 0.
    end_s
        When, in seconds since the epoch.
    ms
        How long it took.
    rows
        Of each stream.
    """

    kind: ClassVar[str] = "batch"
    batch: int
    end_s: float
    ms: int
    rows: Mapping[str, int]


@dataclass(frozen=True)
class TaskLoads:
    """What the tasks of the stage that read most shuffled rows had to read, told at the end.

    Parameters
    ----------
    tasks
        Their number, by batch.
    imbalance
        Rows of the busiest over the mean, by batch.
    """

    kind: ClassVar[str] = "task_loads"
    tasks: Mapping[str, int]
    imbalance: Mapping[str, float]


Event = Session | Started | Delivered | Batch | TaskLoads
_KINDS: dict[str, type[Event]] = {kind.kind: kind for kind in (Session, Started, Delivered, Batch, TaskLoads)}


def write(event: Event) -> str:
    """Write a line without its end."""
    return json.dumps({"event": event.kind, **asdict(event)})


def read(line: str) -> Event:
    """Read a line."""
    told: dict[str, Any] = json.loads(line)
    kind = _KINDS[told.pop("event")]
    return kind(**{field.name: told[field.name] for field in fields(kind)})
