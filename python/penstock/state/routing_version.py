"""Routing versions and the file FORMAT: `docs/PROTOCOL.md`, sections 3 and 8."""

from dataclasses import dataclass

from penstock.state.framing import MAX_SHARDS, Cursor, Kind
from penstock.state.layout import PinSlots, read_pin_slots

WITH_PER_CORE = 3
"""First format version that records which regions have one task per core."""


@dataclass(frozen=True)
class RoutingVersion:
    """The routing of a query from `first_batch` on.

    `tasks` maps each region to its number of tasks, and `pin_slots` to its pin slots. `per_core` has the regions that
    have as many tasks as the application's cores allowed.
    """

    number: int
    first_batch: int
    shard_count: int
    tasks: dict[int, int]
    pin_slots: dict[int, PinSlots]
    per_core: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Description:
    """What is fixed for a query's lifetime. `query_id` is Spark's, or empty if the query had none."""

    shard_count: int
    written_by: str
    query_id: str


def decode_routing_version(body: bytes, version: int = Kind.ROUTING_VERSION.version) -> RoutingVersion:
    """Decode the body of a routing version of the given format version; raises `MalformedDataError`."""
    cursor = Cursor(body)
    number, first_batch = cursor.varint(), cursor.varint()
    shard_count = cursor.number("number of shards", 1, MAX_SHARDS)
    tasks: dict[int, int] = {}
    pin_slots: dict[int, PinSlots] = {}
    for _ in range(cursor.count("number of regions")):
        region = cursor.number("region", max(tasks, default=-1) + 1, (1 << 63) - 1)
        tasks[region] = cursor.number("number of tasks", 1, shard_count)
        pin_slots[region] = read_pin_slots(cursor)
    per_core = set()
    if version >= WITH_PER_CORE:
        per_core = {region for region in tasks if cursor.number("whether tasks are per core", 0, 1)}
    cursor.end("region")
    return RoutingVersion(number, first_batch, shard_count, tasks, pin_slots, frozenset(per_core))


def decode_description(body: bytes) -> Description:
    """Decode the body of FORMAT; raises `MalformedDataError`."""
    cursor = Cursor(body)
    description = Description(cursor.number("number of shards", 1, MAX_SHARDS), cursor.string(), cursor.string())
    cursor.end("field")
    return description
