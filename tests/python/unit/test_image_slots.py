"""Slots of the hash tables in images: `docs/PROTOCOL.md`, section 5."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.state import image
from penstock.state.framing import MalformedDataError
from written_checkpoint import record, string, varint

Slots = list[tuple[int, int]]
"""Place and hash of each slot. Place 0 means that the slot is free."""
RECORD_UNITS = len(record(b"k0", b"v")) // 8
UNITS_PER_PAGE = 1 << 13
FREE = (0, 0)


def keys(count: int) -> list[bytes]:
    return [b"k%d" % n for n in range(count)]


def place(n: int, pages: int, count: int) -> int:
    """Return the place of the n-th key. All pages but the last have the same number of keys."""
    each = -(-count // pages)
    return n // each * UNITS_PER_PAGE + n % each * RECORD_UNITS + 1


def filled(hashes: list[int], bits: int, pages: int = 1) -> Slots:
    """Insert one record after the other into slots."""
    slots = [FREE] * (1 << bits)
    for n, hashed in enumerate(hashes):
        at = (hashed ^ (hashed >> 16)) % len(slots)
        while slots[at] != FREE:
            at = (at + 1) % len(slots)
        slots[at] = (place(n, pages, len(hashes)), hashed)
    return slots


def written(count: int, slots: Slots, pages: int = 1, flags: int = 16) -> bytes:
    """Return an image of the keys `k0`, `k1` and so on."""
    each = -(-count // pages)
    bodies = [b"".join(record(key, b"v") for key in keys(count)[at : at + each]) for at in range(0, count, each)]
    header = varint(1) + bytes([flags]) + string("f") + varint(count) + varint(len(bodies))
    header += b"".join(varint(len(body)) for body in bodies) + bytes([len(slots).bit_length() - 1])
    slot_bytes = b"".join(struct.pack("<II", *slot) for slot in slots)
    return struct.pack("<I", len(header)) + header + slot_bytes + b"".join(bodies)


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=9), st.integers(1, 3))
def test_an_image_that_follows_the_rules_is_read(hashes, pages):
    read = image.decode(written(len(hashes), filled(hashes, 4, pages), pages))
    assert list(read["f"]) == keys(len(hashes))
    assert read["f"].flags == 0


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=9), st.data())
def test_a_missing_slot_is_found(hashes, data):
    slots = filled(hashes, 4)
    slots[data.draw(st.sampled_from([i for i, slot in enumerate(slots) if slot != FREE]))] = FREE
    with pytest.raises(MalformedDataError, match="slots have other records than pages"):
        image.decode(written(len(hashes), slots))


@pytest.mark.parametrize(
    ("slots", "why"),
    [
        pytest.param([FREE, (1, 1), (1, 2), FREE], "other records than pages", id="a duplicate record"),
        pytest.param([FREE, (1, 1), (2, 2), FREE], "other records than pages", id="place of no record"),
        pytest.param([FREE, (1, 1), FREE, (1 + RECORD_UNITS, 2)], "in which it is not found", id="behind a free slot"),
        pytest.param([(1, 3), FREE, (1 + RECORD_UNITS, 2), FREE], "in which it is not found", id="around the end"),
        pytest.param([(1, 0), (1 + RECORD_UNITS, 1)], "other records than pages", id="no free slot"),
    ],
)
def test_invalid_slots_are_refused(slots, why):
    with pytest.raises(MalformedDataError, match=why):
        image.decode(written(2, slots))


def test_a_search_continues_from_the_last_slot_to_the_first():
    assert len(image.decode(written(2, [(1 + RECORD_UNITS, 3), FREE, FREE, (1, 3)]))["f"]) == 2


def test_slots_of_an_ordered_family_are_refused():
    with pytest.raises(MalformedDataError, match=r"slots of a family with flags 17"):
        image.decode(written(1, [FREE, (1, 1)], flags=17))
