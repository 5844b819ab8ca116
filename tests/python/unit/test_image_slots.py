"""Slots of images, which are those of a hash table: `docs/PROTOCOL.md`, section 5."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.state import image
from penstock.state.framing import MalformedDataError
from written_checkpoint import record, string, varint

Slots = list[tuple[int, int]]
"""Of each slot, the place and the hash; place 0 where it is free."""
RECORD_UNITS = len(record(b"k0", b"v")) // 8
UNITS_PER_PAGE = 1 << 13
FREE = (0, 0)


def keys(count: int) -> list[bytes]:
    return [b"k%d" % n for n in range(count)]


def place(n: int, pages: int, count: int) -> int:
    """Give the place of the n-th key, of which every page has as many as any other, but for the last."""
    each = -(-count // pages)
    return n // each * UNITS_PER_PAGE + n % each * RECORD_UNITS + 1


def filled(hashes: list[int], bits: int, pages: int = 1) -> Slots:
    """Put one record after the other into slots."""
    slots = [FREE] * (1 << bits)
    for n, hashed in enumerate(hashes):
        at = (hashed ^ (hashed >> 16)) % len(slots)
        while slots[at] != FREE:
            at = (at + 1) % len(slots)
        slots[at] = (place(n, pages, len(hashes)), hashed)
    return slots


def written(count: int, slots: Slots, pages: int = 1, flags: int = 16) -> bytes:
    """Write an image of `k0`, `k1` and so on."""
    each = -(-count // pages)
    bodies = [b"".join(record(key, b"v") for key in keys(count)[at : at + each]) for at in range(0, count, each)]
    header = varint(1) + bytes([flags]) + string("f") + varint(count) + varint(len(bodies))
    header += b"".join(varint(len(body)) for body in bodies) + bytes([len(slots).bit_length() - 1])
    told = b"".join(struct.pack("<II", *slot) for slot in slots)
    return struct.pack("<I", len(header)) + header + told + b"".join(bodies)


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=9), st.integers(1, 3))
def test_what_is_written_by_the_rules_is_read(hashes, pages):
    read = image.decode(written(len(hashes), filled(hashes, 4, pages), pages))
    assert list(read["f"]) == keys(len(hashes))
    assert read["f"].flags == 0


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=9), st.data())
def test_a_slot_that_is_lost_is_missed(hashes, data):
    slots = filled(hashes, 4)
    slots[data.draw(st.sampled_from([i for i, slot in enumerate(slots) if slot != FREE]))] = FREE
    with pytest.raises(MalformedDataError, match="slots have other records than pages"):
        image.decode(written(len(hashes), slots))


@pytest.mark.parametrize(
    ("slots", "why"),
    [
        pytest.param([FREE, (1, 1), (1, 2), FREE], "other records than pages", id="a record twice"),
        pytest.param([FREE, (1, 1), (2, 2), FREE], "other records than pages", id="no record's place"),
        pytest.param([FREE, (1, 1), FREE, (1 + RECORD_UNITS, 2)], "in which it is not found", id="behind a free one"),
        pytest.param([(1, 3), FREE, (1 + RECORD_UNITS, 2), FREE], "in which it is not found", id="around the end"),
        pytest.param([(1, 0), (1 + RECORD_UNITS, 1)], "other records than pages", id="none is free"),
    ],
)
def test_slots_that_cannot_be_are_refused(slots, why):
    with pytest.raises(MalformedDataError, match=why):
        image.decode(written(2, slots))


def test_the_first_slot_comes_behind_the_last():
    assert len(image.decode(written(2, [(1 + RECORD_UNITS, 3), FREE, FREE, (1, 3)]))["f"]) == 2


def test_an_ordered_family_has_none():
    with pytest.raises(MalformedDataError, match=r"slots of a family with flags 17"):
        image.decode(written(1, [FREE, (1, 1)], flags=17))
