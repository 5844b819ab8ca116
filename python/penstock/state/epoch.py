"""Epochs and the file FORMAT: `docs/PROTOCOL.md`, sections 3 and 8."""

from dataclasses import dataclass

from penstock.state.framing import Cursor


@dataclass(frozen=True)
class Epoch:
    """What a query routes by from its first batch on; `tasks` maps each region to its number of tasks."""

    number: int
    first_batch: int
    shard_count: int
    tasks: dict[int, int]


@dataclass(frozen=True)
class Description:
    """What is fixed for a query's life."""

    shard_count: int
    written_by: str


def decode_epoch(body: bytes) -> Epoch:
    """Decode an epoch's body; raises `MalformedDataError`."""
    cursor = Cursor(body)
    number, first_batch, shard_count = cursor.varint(), cursor.varint(), cursor.varint()
    tasks = {cursor.varint(): cursor.varint() for _ in range(cursor.count("number of regions"))}
    cursor.end("region")
    return Epoch(number, first_batch, shard_count, tasks)


def decode_description(body: bytes) -> Description:
    """Decode the body of FORMAT; raises `MalformedDataError`."""
    cursor = Cursor(body)
    return Description(cursor.varint(), cursor.string())
