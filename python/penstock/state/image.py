"""Images, the whole content of a shard as snapshots hold it: `docs/PROTOCOL.md`, section 5."""

from penstock.state.change_set import Content, Family, read_flags, read_value
from penstock.state.framing import Cursor, MalformedDataError

_UNIT_BYTES = 8
_HASH_BYTES = 4
_PAGE_BYTES = 1 << 16
"""A page that is longer has one record."""


def decode(section: bytes) -> Content:
    """Decode an image.

    Parameters
    ----------
    section
        The image.

    Returns
    -------
    dict
        The shard's column families.

    Raises
    ------
    MalformedDataError
        Where the bytes do not follow the format.
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
    for name, flags, records, pages in described:
        at = cursor.position
        if name in content:
            raise MalformedDataError(f"family {name} is there twice", at)
        family = content[name] = Family(flags)
        if not family.ordered:
            cursor.take(_HASH_BYTES * records)
        for length in pages:
            _page(cursor, length, family)
        if len(family) != records:
            raise MalformedDataError(f"family {name} has {len(family)} records, {records} were announced", at)
    cursor.end("page")
    return content


def _described(header: Cursor) -> tuple[str, int, int, list[int]]:
    flags, name, records = read_flags(header), header.string(), header.varint()
    pages = []
    for _ in range(header.count("number of pages")):
        at = header.position
        length = header.varint()
        if not length or length % _UNIT_BYTES:
            raise MalformedDataError(f"a page of {length} bytes", at)
        pages.append(length)
    return name, flags, records, pages


def _page(cursor: Cursor, length: int, family: Family) -> None:
    start = cursor.position
    page = Cursor(cursor.take(length))
    last = next(reversed(family), None) if family.ordered else None
    while page.remaining:
        at = page.position
        try:
            key_bytes, value_bytes = page.u32(), page.u32()
            key, value = page.take(key_bytes), read_value(page, value_bytes, family.flags)
            page.take(-(key_bytes + value_bytes) % _UNIT_BYTES)
        except MalformedDataError as error:
            raise MalformedDataError(error.what, start + error.at_byte) from error
        if length > _PAGE_BYTES and page.position < length:
            raise MalformedDataError(f"a page of {length} bytes has more than one record", start + at)
        if key in family or (last is not None and key < last):
            raise MalformedDataError("a key is there twice, or not in order", start + at)
        family[key] = value
        last = key if family.ordered else None
