"""Change sets, the form in which changes are stored: `docs/PROTOCOL.md`, section 4."""

from penstock.state.framing import Cursor, MalformedDataError

_ORDERED, _MULTI_VALUED, _REMOVED, _MOVED = 1, 2, 4, 8
_PUT, _REMOVE, _APPEND = 0, 1, 2


class Family(dict[bytes, bytes]):
    """A column family of a shard: keys to values.

    Parameters
    ----------
    flags
        Whether its keys are in order, and whether a value is a sequence of values.
    """

    def __init__(self, flags: int) -> None:
        super().__init__()
        self.flags = flags

    @property
    def ordered(self) -> bool:
        """Whether its keys are in order."""
        return bool(self.flags & _ORDERED)


Content = dict[str, Family]
"""Column families of a shard by name."""


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
    families: list[Family | None] = []
    for _ in range(cursor.count("number of families")):
        at = cursor.position
        flags, name = read_flags(cursor, _REMOVED | _MOVED), cursor.string()
        traits = flags & ~_MOVED
        if flags & _REMOVED:
            content.pop(name, None)
            families.append(None)
        elif content.setdefault(name, Family(traits)).flags == traits:
            families.append(content[name])
        else:
            raise MalformedDataError(f"family {name} had other flags than {traits} before", at)
    while cursor.remaining:
        _change(cursor, families)


def read_flags(cursor: Cursor, more: int = 0) -> int:
    """Read a family's flags: its traits, or one of `more`."""
    at = cursor.position
    flags = cursor.byte()
    if flags & ~(_ORDERED | _MULTI_VALUED | more):
        raise MalformedDataError(f"unknown family flags {flags}", at)
    return flags


def _change(cursor: Cursor, families: list[Family | None]) -> None:
    at = cursor.position
    tag = cursor.varint()
    index, operation = tag >> 2, tag & 3
    family = families[index] if index < len(families) else None
    if family is None:
        raise MalformedDataError(f"a change of family {index}, which is not declared", at)
    key = cursor.take(cursor.count("length of a key"))
    if operation == _REMOVE:
        family.pop(key, None)
    elif operation == _PUT:
        family[key] = read_value(cursor, cursor.count("length of a value"), family)
    elif operation == _APPEND and family.flags & _MULTI_VALUED:
        family[key] = family.get(key, b"") + read_value(cursor, cursor.count("length of a value"), family)
    else:
        raise MalformedDataError(f"a change of kind {operation} in a family with flags {family.flags}", at)


def read_value(cursor: Cursor, length: int, family: Family) -> bytes:
    """Read a value, and check that the values of a multi-valued family fill their room."""
    start = cursor.position
    value = cursor.take(length)
    if family.flags & _MULTI_VALUED:
        values = Cursor(value)
        while values.remaining:
            at = start + values.position
            try:
                values.take(values.u32())
            except MalformedDataError as error:
                raise MalformedDataError("one of many values does not fit", at) from error
    return value
