"""Images, the whole content of a shard as stored in snapshots: `docs/PROTOCOL.md`, section 5."""

import numpy as np
from numpy.typing import NDArray

from penstock.state.change_set import ORDERED, Content, Family, read_flags, read_value
from penstock.state.framing import Cursor, MalformedDataError

_UNIT_BYTES = 8
_HASH_BYTES = 4
_HAS_SLOTS = 16
_SLOT = np.dtype([("place", "<u4"), ("hash", "<u4")])
_UNITS_PER_PAGE = 1 << 13
_MAX_SLOT_BITS = 27
_PAGE_BYTES = 1 << 16
"""A longer page holds exactly one record."""


def decode(section: bytes) -> Content:
    """Decode an image.

    Parameters
    ----------
    section
        Bytes of the image.

    Returns
    -------
    dict
        The shard's column families.

    Raises
    ------
    MalformedDataError
        The bytes do not follow the format.
    """
    cursor = Cursor(section)
    header_bytes = cursor.u32()
    header_at = cursor.position
    header = Cursor(cursor.take(header_bytes))
    try:
        described = [_described(header) for _ in range(header.count("number of families"))]
        header.end("family")
    except MalformedDataError as error:
        raise MalformedDataError(error.what, header_at + error.at_byte) from error
    content: Content = {}
    for name, flags, records, pages, slot_bits in described:
        at = cursor.position
        if name in content:
            raise MalformedDataError(f"family {name} occurs twice", at)
        family = content[name] = Family(flags)
        slots = cursor.take(_SLOT.itemsize << slot_bits) if slot_bits is not None else b""
        if slot_bits is None and not family.ordered:
            cursor.take(_HASH_BYTES * records)
        starts = [
            number * _UNITS_PER_PAGE + start // _UNIT_BYTES
            for number, length in enumerate(pages)
            for start in _page(cursor, length, family)
        ]
        if len(family) != records:
            raise MalformedDataError(f"family {name} has {len(family)} records, expected {records}", at)
        if slot_bits is not None:
            _check_slots(np.frombuffer(slots, _SLOT), np.array(starts), at)
    cursor.end("page")
    return content


def _described(header: Cursor) -> tuple[str, int, int, list[int], int | None]:
    flags, name, records = read_flags(header, _HAS_SLOTS), header.string(), header.varint()
    pages = []
    for _ in range(header.count("number of pages")):
        at = header.position
        length = header.varint()
        if not length or length % _UNIT_BYTES:
            raise MalformedDataError(
                f"length of a page is {length} bytes, not a positive multiple of {_UNIT_BYTES}", at
            )
        pages.append(length)
    if not flags & _HAS_SLOTS:
        return name, flags, records, pages, None
    at = header.position
    bits = header.byte()
    if bits > _MAX_SLOT_BITS or flags & ORDERED:
        raise MalformedDataError(f"2^{bits} slots of a family with flags {flags}", at)
    return name, flags & ~_HAS_SLOTS, records, pages, bits


def _check_slots(slots: NDArray[np.void], starts: NDArray[np.int64], at: int) -> None:
    """Check that each record is in one slot, with no free slot between its preferred slot and its actual one."""
    mask = len(slots) - 1
    index = np.flatnonzero(slots["place"])
    if not np.array_equal(np.sort(slots["place"][index].astype(np.int64) - 1), starts) or len(index) > mask:
        raise MalformedDataError("slots have other records than pages", at)
    hashes = slots["hash"][index]
    distance = (index - (hashes ^ (hashes >> 16))) & mask
    free = np.flatnonzero(slots["place"] == 0)
    # The nearest free slot before each used slot, wrapping around at the start of the table.
    before = free[np.searchsorted(free, index) - 1]
    if np.any(distance >= ((index - before) & mask)):
        raise MalformedDataError("a record is in a slot in which it is not found", at)


def _page(cursor: Cursor, length: int, family: Family) -> list[int]:
    """Read a page, and return where its records start."""
    starts = []
    start = cursor.position
    page = Cursor(cursor.take(length))
    last = next(reversed(family), None) if family.ordered else None
    while page.remaining:
        at = page.position
        starts.append(at)
        try:
            key_bytes, value_bytes = page.u32(), page.u32()
            key, value = page.take(key_bytes), read_value(page, value_bytes, family.flags)
            page.take(-(key_bytes + value_bytes) % _UNIT_BYTES)
        except MalformedDataError as error:
            raise MalformedDataError(error.what, start + error.at_byte) from error
        if length > _PAGE_BYTES and page.position < length:
            raise MalformedDataError(f"a page of {length} bytes has more than one record", start + at)
        if key in family or (last is not None and key < last):
            raise MalformedDataError("a key occurs twice or is not in order", start + at)
        family[key] = value
        last = key if family.ordered else None
    return starts
