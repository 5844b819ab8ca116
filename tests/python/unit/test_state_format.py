"""Data that `docs/PROTOCOL.md` does not allow is refused, with the position of the error."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from penstock.state import change_set, manifest, routing_version
from penstock.state import image as images
from penstock.state.change_set import Family
from penstock.state.checkpoint import Checkpoint, DamagedFileError
from penstock.state.framing import HEADER_BYTES, Cursor, Kind, MalformedDataError
from penstock.state.layout import read_pin_slots
from penstock.state.manifest import Section
from penstock.state.storage import ArrowStorage, LocalStorage
from written_checkpoint import SHARDS, Writer, frame, image, record, string, uuid, varint

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ORDERED, MULTI_VALUED, REMOVED = 1, 2, 4
PUT, REMOVE, APPEND = 0, 1, 2


def change(operation: int, key: bytes, value: bytes) -> bytes:
    return varint(operation) + varint(len(key)) + key + varint(len(value)) + value


def section(flags: int, *changes: bytes) -> bytes:
    return varint(1) + bytes([flags]) + string("f") + b"".join(changes)


def values(*items: bytes) -> bytes:
    return b"".join(struct.pack("<I", len(v)) + v for v in items)


def a_manifest(*stores: bytes, shard_count: int = 2) -> bytes:
    """Return a manifest of one container, which is a changelog, and one lineage."""
    head = (
        varint(5) + varint(0) + varint(1) + varint(3) + uuid(UUID(int=1)) + struct.pack("<Q", 0) + varint(shard_count)
    )
    head += varint(1) + b"\1" + varint(5) + uuid(UUID(int=2)) + varint(1) + uuid(UUID(int=2))
    return head + varint(len(stores)) + b"".join(stores)


def a_store(offset: int, shards: int = 2) -> bytes:
    delta = b"\0" + varint(1) + varint(6) + varint(0) + varint(0) + varint(offset) + varint(9) + b"\0\0\0\0"
    return varint(0) + string("s") + b"\0" + varint(shards) + delta * shards


def an_image(*pages: dict[bytes, bytes], flags: int = 0) -> bytes:
    return image(("f", flags, list(pages)))


AFTER_IMAGE_HEADER = len(image(("f", 0, [{b"k": b"v"}]))) - len(record(b"k", b"v"))
LARGE = b"x" * (1 << 16)
AFTER_FAMILY = len(section(0))
AFTER_HEAD = len(a_manifest())

REFUSED: dict[str, tuple[Callable[[bytes], object], bytes, int]] = {
    "a number of ten bytes": (routing_version.decode_description, b"\x84" + b"\x80" * 8 + b"\1" + string("x"), 0),
    "a number longer than necessary": (routing_version.decode_description, b"\x84\0" + string("x"), 0),
    "FORMAT without shards": (routing_version.decode_description, b"\0" + string("x"), 0),
    "FORMAT with trailing bytes": (routing_version.decode_description, varint(4) + string("x") + string("") + b"?", 4),
    "a name that is not UTF-8": (routing_version.decode_description, b"\4\1\xff", 1),
    "a routing version without shards": (routing_version.decode_routing_version, b"\0\0\0\0", 2),
    "a region without tasks": (routing_version.decode_routing_version, b"\0\0\4\1\0\0", 5),
    "more tasks than shards": (routing_version.decode_routing_version, b"\0\0\4\1\0\5", 5),
    "a duplicate region": (routing_version.decode_routing_version, b"\0\0\4\2\1\1\0\1\1\0", 7),
    "regions in descending order": (routing_version.decode_routing_version, b"\0\0\4\2\2\1\0\1\1\0", 7),
    "tasks per core of a missing region": (routing_version.decode_routing_version, b"\0\0\4\1\1\1\0\1\0", 8),
    "tasks per core of some regions": (routing_version.decode_routing_version, b"\0\0\4\2\1\1\0\2\1\0\1", 11),
    "tasks per core with an invalid flag": (routing_version.decode_routing_version, b"\0\0\4\1\1\1\0\2", 7),
    "tasks per core in the format of 0.1.0": (
        lambda body: routing_version.decode_routing_version(body, version=2),
        b"\0\0\4\1\1\1\0\1",
        7,
    ),
    "a section in the header": (manifest.decode, a_manifest(a_store(HEADER_BYTES - 1)), AFTER_HEAD + 10),
    "a duplicate store": (
        manifest.decode,
        a_manifest(a_store(20), a_store(20)),
        AFTER_HEAD + len(a_store(20)),
    ),
    "a store that lacks shards": (manifest.decode, a_manifest(a_store(20, shards=2), shard_count=3), AFTER_HEAD + 4),
    "append in a family of single values": (
        lambda data: change_set.apply(data, {}),
        section(ORDERED, change(APPEND, b"k", values(b"v"))),
        AFTER_FAMILY,
    ),
    "a value longer than its bytes": (
        lambda data: change_set.apply(data, {}),
        section(MULTI_VALUED, change(PUT, b"k", values(b"v", b"w")[:-1])),
        AFTER_FAMILY + 9,
    ),
    "a value without its length": (
        lambda data: change_set.apply(data, {}),
        section(MULTI_VALUED, change(APPEND, b"k", values(b"v") + b"\0\0\0")),
        AFTER_FAMILY + 9,
    ),
    "an image's header longer than the image": (images.decode, b"\5\0\0\0\1", 4),
    "an image with unknown flags": (images.decode, an_image({b"k": b"v"}, flags=REMOVED), 5),
    "a page of incomplete units": (images.decode, an_image({b"k": b"v"}).replace(b"\1\1\x10", b"\1\1\x0f"), 10),
    "a record longer than its page": (
        images.decode,
        an_image({b"k": b"v"}).replace(b"\1\0\0\0\1\0\0\0", b"\1\0\0\0\xff\0\0\0"),
        AFTER_IMAGE_HEADER + 9,
    ),
    "fewer records than announced": (
        images.decode,
        an_image({b"k": b"v"}, flags=ORDERED).replace(b"\1\1\x10", b"\2\1\x10"),
        AFTER_IMAGE_HEADER - 4,
    ),
    "a duplicate key": (
        images.decode,
        an_image({b"k": b"v"}, {b"k": b"w"}),
        AFTER_IMAGE_HEADER + 1 + 4 + 16,
    ),
    "keys in descending order": (
        images.decode,
        an_image({b"l": b"v"}, {b"k": b"w"}, flags=ORDERED),
        AFTER_IMAGE_HEADER + 1 - 4 + 16,
    ),
    "two records in a large page": (
        images.decode,
        an_image({b"k": LARGE, b"l": b"v"}),
        AFTER_IMAGE_HEADER + 2 + 4,
    ),
    "an image with trailing bytes": (images.decode, an_image({b"k": b"v"}) + b"?", AFTER_IMAGE_HEADER + 16),
    "values of an image with a wrong length": (
        images.decode,
        an_image({b"k": values(b"v")[:-1]}, flags=MULTI_VALUED),
        AFTER_IMAGE_HEADER + 9,
    ),
    "a family with other flags": (
        lambda data: change_set.apply(data, {"f": change_set.Family(ORDERED)}),
        section(ORDERED | MULTI_VALUED),
        1,
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_invalid_data_is_refused_with_its_position(case):
    read, data, at_byte = REFUSED[case]
    with pytest.raises(MalformedDataError) as caught:
        read(data)
    assert caught.value.at_byte == at_byte, caught.value


def test_valid_data_close_to_invalid_data_is_read():
    assert Cursor(b"\xff" * 8 + b"\x7f").varint() == (1 << 63) - 1
    assert routing_version.decode_routing_version(b"\0\0\4\2\1\1\0\2\4\0", version=2).tasks == {1: 1, 2: 4}
    assert routing_version.decode_routing_version(b"\0\0\4\2\1\1\0\2\4\0", version=2).per_core == frozenset()
    assert routing_version.decode_routing_version(b"\0\0\4\2\1\1\0\2\4\0\0\1").per_core == {2}
    decoded = manifest.decode(a_manifest(a_store(HEADER_BYTES)))
    assert [len(shards) for shards in decoded.stores.values()] == [2]
    content: change_set.Content = {}
    change_set.apply(section(MULTI_VALUED, change(PUT, b"k", b""), change(APPEND, b"k", values(b"v", b""))), content)
    assert content == {"f": {b"k": values(b"v", b"")}}
    written = {b"b": b"1" * 9, b"a": LARGE}
    assert images.decode(an_image({b"b": b"1" * 9}, {b"a": LARGE})) == {"f": written}
    assert images.decode(an_image({b"a": b""}, {b"b": b""}, flags=ORDERED)) == {"f": {b"a": b"", b"b": b""}}
    assert images.decode(image()) == {}
    # A removed family may be added again with other flags.
    change_set.apply(varint(2) + bytes([REMOVED]) + string("f") + bytes([ORDERED]) + string("f"), content)
    assert content == {"f": {}}


@pytest.fixture
def checkpoint(tmp_path) -> Path:
    writer = Writer(tmp_path)
    for batch in range(3):
        writer.batch(batch, {0: {b"k": b"%d" % batch}})
    return tmp_path / "state" / "_penstock"


def refused(root: Path, read: Callable[[Checkpoint], object]) -> DamagedFileError:
    with pytest.raises(DamagedFileError) as caught:
        read(Checkpoint(str(root.parent.parent)))
    assert caught.value.error_class == "PENSTOCK_CORRUPT_FILE"
    return caught.value


def test_a_manifest_or_routing_version_under_another_name_is_refused(checkpoint):
    (checkpoint / "manifests" / "1.0").rename(checkpoint / "manifests" / "2.1")
    (checkpoint / "epochs" / "0").rename(checkpoint / "epochs" / "2")
    assert refused(checkpoint, lambda c: c.manifest(2, 1)).at_byte == HEADER_BYTES
    assert refused(checkpoint, lambda c: c.routing_version(2)).at_byte == HEADER_BYTES


def test_trailing_bytes_are_refused(checkpoint):
    for name in ("FORMAT", "epochs/0"):
        path = checkpoint / name
        size = path.stat().st_size
        path.write_bytes(path.read_bytes() + b"\0")
        error = refused(checkpoint, lambda c, name=name: c.routing_version(0) if name != "FORMAT" else c.description())
        assert (error.path, error.at_byte) == (name, size)


def test_a_length_that_differs_from_the_file_is_refused(checkpoint):
    path = checkpoint / "manifests" / "2.0"
    intact = path.read_bytes()
    path.write_bytes(intact[:12] + struct.pack("<I", (1 << 31) - 17) + intact[16:])
    assert refused(checkpoint, lambda c: c.manifest(2, 0)).at_byte == len(intact)
    path.write_bytes(intact[:12] + struct.pack("<I", (1 << 31) - 16) + intact[16:])
    assert refused(checkpoint, lambda c: c.manifest(2, 0)).at_byte == 12
    path.write_bytes(frame(Kind.MANIFEST, b"\0", version=2)[:19])
    assert refused(checkpoint, lambda c: c.manifest(2, 0)).at_byte == 19


def test_a_section_beyond_the_file_is_refused(checkpoint):
    name = f"changelogs/0-{UUID(int=1000)}"
    size = (checkpoint / name).stat().st_size
    error = refused(checkpoint, lambda c: c.section(Section(name, size - 3, 5, 0)))
    assert (error.path, error.at_byte) == (name, size)
    for offset in (size + 1, (1 << 63) - 1):
        error = refused(checkpoint, lambda c, offset=offset: c.section(Section(name, offset, 5, 0)))
        assert (error.path, error.at_byte) == (name, offset)
    assert Checkpoint(str(checkpoint.parent.parent)).description().shard_count == SHARDS
    for storage in (LocalStorage(checkpoint), ArrowStorage(checkpoint.as_uri())):
        assert storage.read(name, (1 << 63) - 1, 5) == b""


def test_pin_slots_are_read_or_refused():
    def read(data: bytes) -> tuple[int | None, ...]:
        cursor = Cursor(data)
        pin_slots = read_pin_slots(cursor)
        cursor.end("place")
        return pin_slots

    def pinned(hash_: int) -> bytes:
        return b"\1" + struct.pack("<i", hash_)

    assert read(varint(0)) == ()
    assert read(varint(3) + pinned(-2) + b"\0" + pinned(7)) == (-2, None, 7)
    for wrong, reason in (
        (varint(1) + b"\0", "the last pin slot is free"),
        (varint(2) + pinned(5) + pinned(5), "a hash is pinned twice"),
        (varint(1) + b"\2", "unknown flag 2 of a pin slot"),
        (varint(1025), "number of pin slots is 1025"),
    ):
        with pytest.raises(MalformedDataError, match=reason):
            read(wrong)


def test_a_routing_version_with_pinned_hashes_is_read():
    body = varint(1) + varint(3) + varint(8) + varint(1) + b"\0\2" + varint(1) + b"\1" + struct.pack("<i", 5)
    read = routing_version.decode_routing_version(body + b"\0")
    assert (read.tasks, read.pin_slots) == ({0: 2}, {0: (5,)})


def test_changes_apply_after_moves_of_the_same_family():
    moved = bytes([8]) + string("f") + bytes([0]) + string("f")
    changes = b"".join(
        varint(index << 2 | op) + varint(1) + key + (varint(1) + value if op == PUT else b"")
        for index, op, key, value in ((0, PUT, b"a", b"1"), (0, 1, b"b", b""), (1, PUT, b"a", b"2"))
    )
    content = {"f": Family(0)}
    content["f"][b"b"] = b"9"
    change_set.apply(varint(2) + moved + changes, content)
    assert content == {"f": {b"a": b"2"}}
