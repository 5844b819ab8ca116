"""Writes checkpoints as `docs/PROTOCOL.md` specifies, for tests of their readers."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from penstock.state.framing import Kind, crc32c

if TYPE_CHECKING:
    from pathlib import Path

QUERY = "9b0c1d2e-query"
SHARDS = 4


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def string(text: str) -> bytes:
    return varint(len(text.encode())) + text.encode()


def uuid(value: UUID) -> bytes:
    return struct.pack("<QQ", value.int >> 64, value.int & (1 << 64) - 1)


def frame(kind: Kind, body: bytes, payload: bytes = b"", version: int = 2) -> bytes:
    return b"PENSTOCK" + struct.pack("<HBBII", version, kind, 0, len(body), crc32c(body)) + body + payload


Changes = dict[bytes, bytes | None]


def change_set(changes: Changes, moved: Changes | None = None) -> bytes:
    """Return puts, and removals (value None), of one hash family. Changes that move keys (`moved`) come first."""
    families = ([] if moved is None else [(8, moved)]) + [(0, changes)]
    out = varint(len(families)) + b"".join(bytes([flags]) + string("default") for flags, _ in families)
    for index, (_, family_changes) in enumerate(families):
        for key, value in family_changes.items():
            out += varint(index << 2 | (0 if value is not None else 1)) + varint(len(key)) + key
            out += b"" if value is None else varint(len(value)) + value
    return out


def image(*families: tuple[str, int, list[dict[bytes, bytes]]]) -> bytes:
    """Return an image of families, each with its name, its flags and its pages. Hashes are zero."""
    header, body = varint(len(families)), b""
    for name, flags, pages in families:
        records = sum(map(len, pages))
        header += bytes([flags]) + string(name) + varint(records) + varint(len(pages))
        body += b"" if flags & 1 else bytes(4 * records)
        for page in pages:
            written = b"".join(map(record, page, page.values()))
            header += varint(len(written))
            body += written
    return struct.pack("<I", len(header)) + header + body


def record(key: bytes, value: bytes) -> bytes:
    """Return a record of a page, with its padding."""
    return struct.pack("<II", len(key), len(value)) + key + value + bytes(-(len(key) + len(value)) % 8)


@dataclass
class Written:
    """A section that was written: its version and lineage, its file, and its offset in the file."""

    version: int
    lineage: UUID
    container: bytes
    offset: int
    section: bytes


@dataclass
class Writer:
    """Writes the checkpoint of a query of one operator with one store, and a changelog per batch."""

    root: Path
    chains: list[list[Written]] = field(default_factory=lambda: [[] for _ in range(SHARDS)])
    snapshots: list[Written | None] = field(default_factory=lambda: [None] * SHARDS)
    retained_from: int = 0
    pin_slots: list[int | None] = field(default_factory=list)
    written_at_ms: int = 1_700_000_000_000

    def __post_init__(self) -> None:
        self.write("FORMAT", frame(Kind.FORMAT, varint(SHARDS) + string("a test") + string(QUERY)))
        self.write(
            "epochs/0", frame(Kind.ROUTING_VERSION, varint(0) + varint(0) + varint(SHARDS) + varint(1) + b"\0\x02\0")
        )
        for partition in range(SHARDS):
            self.write(f"../0/{partition}/_penstock", b"penstock\n")

    def write(self, path: str, data: bytes) -> None:
        target = self.root / "state" / "_penstock" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)

    def table(self, sections: dict[int, bytes]) -> tuple[bytes, int]:
        """Return a section table, and the offset of the payload."""
        body, at = varint(len(sections)), 0
        for shard, section in sections.items():
            body += varint(0) + string("default") + varint(shard) + varint(at) + varint(len(section))
            body += struct.pack("<I", crc32c(section))
            at += len(section)
        return body, 20 + len(body)

    def lay_out(self, *pin_slots: int | None) -> None:
        """Set the pinned hashes from the next batch on. A pin slot with another hash than before starts empty."""
        del self.chains[SHARDS + len(pin_slots) :], self.snapshots[SHARDS + len(pin_slots) :]
        for slot, pinned in enumerate(pin_slots):
            if slot >= len(self.pin_slots):
                self.chains.append([])
                self.snapshots.append(None)
            elif pinned != self.pin_slots[slot]:
                self.chains[SHARDS + slot], self.snapshots[SHARDS + slot] = [], None
        self.pin_slots = list(pin_slots)

    def batch(self, batch: int, changes: dict[int, Changes], moved: dict[int, Changes] | None = None) -> None:
        """Write a batch that changes some shards."""
        self.change(batch, changes, UUID(int=1000 + batch), moved)
        self.manifest(batch)
        (self.root / "commits").mkdir(exist_ok=True)
        (self.root / "commits" / str(batch)).write_text("v1\n{}")

    def change(
        self, batch: int, changes: dict[int, Changes], lineage: UUID, moved: dict[int, Changes] | None = None
    ) -> None:
        """Write the changelog of a task attempt."""
        moves = moved or {}
        sections = {
            shard: change_set(changes.get(shard, {}), moves.get(shard)) for shard in sorted(changes.keys() | moves)
        }
        body, at = self.table(sections)
        self.write(f"changelogs/{batch}-{lineage}", frame(Kind.CHANGELOG, body, b"".join(sections.values())))
        for shard, section in sections.items():
            self.chains[shard].append(Written(batch + 1, lineage, b"\1" + varint(batch) + uuid(lineage), at, section))
            at += len(section)

    def snapshot(self, shard: int, content: dict[bytes, bytes]) -> str:
        """Write a snapshot of a shard, to which the next manifest refers. Return its path."""
        last = self.chains[shard][-1]
        name = UUID(int=5000 + last.version * SHARDS + shard)
        section = image(("default", 0, [content]))
        body, at = self.table({shard: section})
        path = f"snapshots/{last.version}-{name}"
        self.write(path, frame(Kind.SNAPSHOTS, body, section))
        container = b"\2" + varint(last.version) + uuid(name)
        self.snapshots[shard] = Written(last.version, last.lineage, container, at, section)
        self.chains[shard].clear()
        return path

    def manifest(self, batch: int, generation: int = 0, base: int = 0, payload: bytes = b"") -> None:
        parts = [w for chain in self.chains for w in chain] + [s for s in self.snapshots if s]
        containers = list(dict.fromkeys(w.container for w in parts))
        lineages = list(dict.fromkeys(w.lineage for w in parts))

        def change(w: Written) -> bytes:
            return (
                varint(w.version)
                + varint(lineages.index(w.lineage))
                + varint(containers.index(w.container))
                + varint(w.offset)
                + varint(len(w.section))
                + struct.pack("<I", crc32c(w.section))
            )

        body = (
            varint(batch)
            + varint(generation)
            + varint(base + 1 if batch else 0)
            + varint(self.retained_from)
            + uuid(UUID(int=7))
            + struct.pack("<Q", self.written_at_ms)
        )
        body += varint(SHARDS) + varint(len(containers)) + b"".join(containers)
        body += varint(len(lineages)) + b"".join(uuid(x) for x in lineages)
        body += varint(1) + varint(0) + string("default") + varint(len(self.pin_slots))
        body += b"".join(b"\0" if p is None else b"\1" + struct.pack("<i", p) for p in self.pin_slots)
        body += varint(len(self.chains))
        for shard in range(len(self.chains)):
            snapshot = self.snapshots[shard]
            body += b"\0" if snapshot is None else b"\1" + change(snapshot)
            body += varint(len(self.chains[shard])) + b"".join(change(w) for w in self.chains[shard])
        self.write(f"manifests/{batch}.{generation}", frame(Kind.MANIFEST, body, payload))
