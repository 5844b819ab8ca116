"""Change sets, the only form in which content is stored: `docs/PROTOCOL.md`, section 4."""

from penstock.state.framing import Cursor, MalformedDataError

_ORDERED, _MULTI_VALUED, _REMOVED = 1, 2, 4
_PUT, _REMOVE, _APPEND = 0, 1, 2

Content = dict[str, dict[bytes, bytes]]
"""Column families of a shard: name to keys to values, as bytes."""


def apply(section: bytes, content: Content) -> None:
    """Apply a change set to a shard's content.

    Parameters
    ----------
    section
        The change set.
    content
        Changed in place; incomplete where the bytes turn out to be wrong.

    Raises
    ------
    MalformedDataError
        Where the bytes do not follow the format.
    """
    cursor = Cursor(section)
    families: list[tuple[dict[bytes, bytes] | None, int]] = []
    for _ in range(cursor.count("number of families")):
        at = cursor.position
        flags, name = cursor.byte(), cursor.string()
        if flags & ~(_ORDERED | _MULTI_VALUED | _REMOVED):
            raise MalformedDataError(f"unknown family flags {flags}", at)
        if flags & _REMOVED:
            content.pop(name, None)
            families.append((None, flags))
        else:
            families.append((content.setdefault(name, {}), flags))
    while cursor.remaining:
        at = cursor.position
        tag = cursor.varint()
        index, operation = tag >> 2, tag & 3
        family, flags = families[index] if index < len(families) else (None, 0)
        if family is None:
            raise MalformedDataError(f"a change of family {index}, which is not declared", at)
        key = cursor.take(cursor.count("length of a key"))
        if operation == _REMOVE:
            family.pop(key, None)
        elif operation == _PUT:
            family[key] = cursor.take(cursor.count("length of a value"))
        elif operation == _APPEND and flags & _MULTI_VALUED:
            family[key] = family.get(key, b"") + cursor.take(cursor.count("length of a value"))
        else:
            raise MalformedDataError(f"a change of kind {operation} in a family with flags {flags}", at)
