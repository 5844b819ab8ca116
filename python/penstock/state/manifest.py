"""Manifests and section tables: `docs/PROTOCOL.md`, sections 5 and 6."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from uuid import UUID

from penstock.state.framing import HEADER_BYTES, MAX_BYTES, MAX_SHARDS, Cursor, MalformedDataError
from penstock.state.layout import PinSlots, read_pin_slots

_CHANGELOG, _SNAPSHOTS, _MANIFEST = 1, 2, 3

_SNAPSHOTS_FOLDER = "snapshots/"

NEVER_WRITTEN = UUID(int=0)


@dataclass(frozen=True)
class Section:
    """Bytes of one change set, or of one image.

    Parameters
    ----------
    path
        Path of the file, relative to the query's Penstock directory.
    offset
        Position in bytes from the start of the file.
    length
        Length in bytes.
    crc
        CRC32C of the bytes.
    """

    path: str
    offset: int
    length: int
    crc: int

    @property
    def is_image(self) -> bool:
        """Whether the section holds the whole content of a shard."""
        return self.path.startswith(_SNAPSHOTS_FOLDER)


@dataclass(frozen=True)
class Change:
    """A snapshot of a shard, or the delta from one version to the next.

    Parameters
    ----------
    version
        Version of the shard that the snapshot holds, or that the delta leads to.
    lineage
        Lineage of that content.
    section
        Location of the bytes.
    """

    version: int
    lineage: UUID
    section: Section


@dataclass(frozen=True)
class Shard:
    """The parts from which a shard is rebuilt: a snapshot, if there is one, and the later deltas, oldest first."""

    snapshot: Change | None
    deltas: tuple[Change, ...]

    @property
    def parts(self) -> tuple[Change, ...]:
        """Snapshot and deltas in the order in which they are applied."""
        return self.deltas if self.snapshot is None else (self.snapshot, *self.deltas)

    @property
    def version(self) -> int:
        """Version that last changed the shard; 0 if none did."""
        return self.parts[-1].version if self.parts else 0

    @property
    def lineage(self) -> UUID:
        """Lineage of the content."""
        return self.parts[-1].lineage if self.parts else NEVER_WRITTEN


@dataclass(frozen=True)
class StoreKey:
    """Identifies a state store of a query."""

    operator_id: int
    store_name: str


@dataclass(frozen=True)
class TableEntry:
    """A section, and the shard that it belongs to."""

    store: StoreKey
    shard: int
    section: Section


@dataclass(frozen=True)
class Manifest:
    """The state of a query after a batch.

    `base_generation` is the generation of the previous batch's manifest that this one builds on; None in the first
    batch. `retained_from` is the oldest batch that is kept completely; older manifests exist only for their payloads.
    `pin_slots` has the pin slots of stores that have any; their shards follow the `shard_count` base shards.
    """

    batch: int
    generation: int
    base_generation: int | None
    retained_from: int
    run: UUID
    written_at_ms: int
    shard_count: int
    stores: dict[StoreKey, tuple[Shard, ...]]
    pin_slots: dict[StoreKey, PinSlots]

    def entries(self) -> Iterator[TableEntry]:
        """Iterate over all sections that the manifest names."""
        for key, shards in self.stores.items():
            for number, shard in enumerate(shards):
                for part in shard.parts:
                    yield TableEntry(key, number, part.section)

    def overlap(self) -> tuple[TableEntry, TableEntry] | None:
        """Return two sections that share bytes, which no writer produces; None if there are none.

        Otherwise a reader could be made to read the same bytes for as many shards as a manifest can name.
        """
        before: TableEntry | None = None
        for entry in sorted(self.entries(), key=lambda e: (e.section.path, e.section.offset)):
            end = before.section.offset + before.section.length if before is not None else 0
            if before is not None and before.section.path == entry.section.path and entry.section.offset < end:
                return before, entry
            before = entry
        return None

    def paths(self) -> set[str]:
        """Return the paths of all files that the manifest names."""
        return {entry.section.path for entry in self.entries()}


def counting(generations: list[int], after: Iterable[Manifest]) -> set[int]:
    """Return which generations of a batch's manifest count: the newest, and those that later batches build on.

    Parameters
    ----------
    generations
        Existing generations, in ascending order.
    after
        Manifests of the next batch that count.
    """
    bases = {manifest.base_generation for manifest in after}
    return {g for g in generations if g == generations[-1] or g in bases}


def manifest_path(batch: int, generation: int) -> str:
    """Return the path of a manifest."""
    return f"manifests/{batch}.{generation}"


def decode(body: bytes) -> Manifest:
    """Decode a manifest's body.

    Raises
    ------
    MalformedDataError
        The bytes do not follow the format.
    """
    cursor = Cursor(body)
    batch, generation, base = cursor.varint(), cursor.varint(), cursor.varint()
    retained_from = cursor.number("oldest retained batch", 0, batch)
    run, written_at_ms = cursor.uuid(), cursor.u64()
    shard_count = cursor.number("number of shards", 1, MAX_SHARDS)
    own, payload_at = manifest_path(batch, generation), HEADER_BYTES + len(body)
    paths = [_container(cursor) for _ in range(cursor.count("number of containers"))]
    lineages = [cursor.uuid() for _ in range(cursor.count("number of lineages"))]

    def section(is_snapshot: bool) -> Section:
        at = cursor.position
        path = paths[_index(cursor, len(paths), "container")]
        if path.startswith(_SNAPSHOTS_FOLDER) != is_snapshot:
            raise MalformedDataError(f"{path} does not hold {'snapshots' if is_snapshot else 'changes'}", at)
        if path == own:
            offset = payload_at + cursor.number("offset of a section", 0, (1 << 63) - 1 - payload_at)
        else:
            offset = cursor.number("offset of a section", HEADER_BYTES, (1 << 63) - 1)
        return Section(path, offset, cursor.count("length of a section", MAX_BYTES), cursor.u32())

    def change(is_snapshot: bool) -> Change:
        return Change(cursor.varint(), lineages[_index(cursor, len(lineages), "lineage")], section(is_snapshot))

    def shard() -> Shard:
        at = cursor.position
        flag = cursor.byte()
        if flag > 1:
            raise MalformedDataError(f"unknown flag {flag} of a shard", at)
        snapshot = change(is_snapshot=True) if flag else None
        return Shard(snapshot, tuple(change(is_snapshot=False) for _ in range(cursor.count("number of deltas"))))

    stores: dict[StoreKey, tuple[Shard, ...]] = {}
    pin_slots: dict[StoreKey, PinSlots] = {}
    for _ in range(cursor.count("number of stores")):
        at = cursor.position
        key = StoreKey(cursor.varint(), cursor.string())
        if key in stores:
            raise MalformedDataError(f"{key} occurs twice", at)
        if pinned := read_pin_slots(cursor):
            pin_slots[key] = pinned
        at = cursor.position
        expected = shard_count + len(pinned)
        if (count := cursor.count("number of shards of a store")) != expected and (count != 1 or pinned):
            raise MalformedDataError(f"{key} has {count} shards, expected {expected}", at)
        stores[key] = tuple(shard() for _ in range(count))
    cursor.end("store")
    return Manifest(
        batch, generation, base - 1 if base else None, retained_from, run, written_at_ms, shard_count, stores, pin_slots
    )


def decode_table(body: bytes, path: str) -> list[TableEntry]:
    """Decode the section table of a changelog or snapshot file; offsets are converted to offsets in the file.

    Raises
    ------
    MalformedDataError
        The bytes do not follow the format.
    """
    cursor = Cursor(body)
    entries = []
    for _ in range(cursor.count("number of sections")):
        store = StoreKey(cursor.varint(), cursor.string())
        shard, offset = cursor.varint(), cursor.varint()
        section = Section(path, HEADER_BYTES + len(body) + offset, cursor.varint(), cursor.u32())
        entries.append(TableEntry(store, shard, section))
    cursor.end("section")
    return entries


def _container(cursor: Cursor) -> str:
    at = cursor.position
    kind = cursor.byte()
    if kind == _CHANGELOG:
        return f"changelogs/{cursor.varint()}-{cursor.uuid()}"
    if kind == _SNAPSHOTS:
        return f"{_SNAPSHOTS_FOLDER}{cursor.varint()}-{cursor.uuid()}"
    if kind == _MANIFEST:
        return manifest_path(cursor.varint(), cursor.varint())
    raise MalformedDataError(f"unknown kind of container {kind}", at)


def _index(cursor: Cursor, size: int, what: str) -> int:
    at = cursor.position
    index = cursor.varint()
    if index >= size:
        raise MalformedDataError(f"{what} {index} does not exist, there are {size}", at)
    return index
