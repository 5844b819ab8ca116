"""Epochs and the file FORMAT: `docs/PROTOCOL.md`, sections 3 and 8."""

from dataclasses import dataclass

from penstock.state.framing import MOST_SHARDS, Cursor
from penstock.state.layout import Places, read_places


@dataclass(frozen=True)
class Epoch:
    """What a query routes by from its first batch on.

    `tasks` maps each region to its number of tasks, `places` to its pinned hashes.
    """

    number: int
    first_batch: int
    shard_count: int
    tasks: dict[int, int]
    places: dict[int, Places]


@dataclass(frozen=True)
class Description:
    """What is fixed for a query's life; `query_id` is Spark's, empty where there was none."""

    shard_count: int
    written_by: str
    query_id: str


def decode_epoch(body: bytes) -> Epoch:
    """Decode an epoch's body; raises `MalformedDataError`."""
    cursor = Cursor(body)
    number, first_batch = cursor.varint(), cursor.varint()
    shard_count = cursor.number("number of shards", 1, MOST_SHARDS)
    tasks: dict[int, int] = {}
    places: dict[int, Places] = {}
    for _ in range(cursor.count("number of regions")):
        region = cursor.number("region", max(tasks, default=-1) + 1, (1 << 63) - 1)
        tasks[region] = cursor.number("number of tasks", 1, shard_count)
        places[region] = read_places(cursor)
    cursor.end("region")
    return Epoch(number, first_batch, shard_count, tasks, places)


def decode_description(body: bytes) -> Description:
    """Decode the body of FORMAT; raises `MalformedDataError`."""
    cursor = Cursor(body)
    description = Description(cursor.number("number of shards", 1, MOST_SHARDS), cursor.string(), cursor.string())
    cursor.end("field")
    return description
