"""Change sets, the form in which changes are stored: `docs/PROTOCOL.md`, section 4."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from penstock.state.framing import Cursor, MalformedDataError

ORDERED, _MULTI_VALUED, _REMOVED, _MOVED = 1, 2, 4, 8
_PUT, _REMOVE, _APPEND = 0, 1, 2


class Family(dict[bytes, bytes]):
    """A column family of a shard: maps keys to values.

    Parameters
    ----------
    flags
        Bits that say whether keys are ordered, and whether a value is a sequence of values.
    """

    def __init__(self, flags: int) -> None:
        super().__init__()
        self.flags = flags

    @property
    def ordered(self) -> bool:
        """Whether keys are stored in order."""
        return bool(self.flags & ORDERED)


Content = dict[str, Family]
"""Column families of a shard by name."""


def apply(section: bytes, content: Content) -> None:
    """Apply a change set to a shard's content.

    Parameters
    ----------
    section
        Bytes of the change set.
    content
        Content to change in place. It is left incomplete if the bytes turn out to be malformed.

    Raises
    ------
    MalformedDataError
        The bytes do not follow the format.
    """
    cursor = Cursor(section)
    families: list[Family] = []
    traits: list[int | None] = []
    for declared in _families(cursor):
        traits.append(declared.traits)
        if declared.traits is None:
            content.pop(declared.name, None)
            families.append(Family(0))
        elif content.setdefault(declared.name, Family(declared.traits)).flags == declared.traits:
            families.append(content[declared.name])
        else:
            what = f"family {declared.name} has flags {declared.traits}, but had others before"
            raise MalformedDataError(what, declared.at)
    for index, operation, key, value in _changes(cursor, traits):
        family = families[index]
        if operation == _REMOVE:
            family.pop(key, None)
        else:
            family[key] = value if operation == _PUT else family.get(key, b"") + value


@dataclass
class Moves:
    """Keys that a change set moves out of a shard and into it, because a hash was pinned or unpinned.

    Parameters
    ----------
    arrived
        Keys and values that moved in, by the family's name.
    left
        Keys that moved out, by the family's name.
    removed
        Families that were removed.
    """

    arrived: dict[str, dict[bytes, bytes]] = field(default_factory=dict)
    left: dict[str, set[bytes]] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)


def moves(section: bytes) -> Moves:
    """Read the keys that a change set moves; raises `MalformedDataError`."""
    cursor, found = Cursor(section), Moves()
    declared = list(_families(cursor))
    found.removed = {family.name for family in declared if family.traits is None}
    for index, operation, key, value in _changes(cursor, [family.traits for family in declared]):
        if declared[index].flags & _MOVED:
            name = declared[index].name
            if operation == _REMOVE:
                found.left.setdefault(name, set()).add(key)
            else:
                found.arrived.setdefault(name, {})[key] = value
    return found


@dataclass(frozen=True)
class _Declared:
    name: str
    flags: int
    at: int

    @property
    def traits(self) -> int | None:
        """Flags that describe the family; None if the family is removed."""
        return None if self.flags & _REMOVED else self.flags & ~_MOVED


def _families(cursor: Cursor) -> Iterator[_Declared]:
    for _ in range(cursor.count("number of families")):
        at = cursor.position
        flags = read_flags(cursor, _REMOVED | _MOVED)
        yield _Declared(cursor.string(), flags, at)


def read_flags(cursor: Cursor, more: int = 0) -> int:
    """Read a family's flags: its traits, and additionally the bits of `more`."""
    at = cursor.position
    flags = cursor.byte()
    if flags & ~(ORDERED | _MULTI_VALUED | more):
        raise MalformedDataError(f"unknown family flags {flags}", at)
    return flags


def _changes(cursor: Cursor, traits: list[int | None]) -> Iterator[tuple[int, int, bytes, bytes]]:
    """Read changes as index of the family, operation, key, and value, which is empty for a removal."""
    while cursor.remaining:
        at = cursor.position
        tag = cursor.varint()
        index, operation = tag >> 2, tag & 3
        flags = traits[index] if index < len(traits) else None
        if flags is None:
            raise MalformedDataError(f"change of family {index}, which is not declared", at)
        key = cursor.take(cursor.count("length of a key"))
        if operation == _REMOVE:
            yield index, operation, key, b""
        elif operation == _PUT or (operation == _APPEND and flags & _MULTI_VALUED):
            yield index, operation, key, read_value(cursor, cursor.count("length of a value"), flags)
        else:
            raise MalformedDataError(f"change of kind {operation} is not allowed in a family with flags {flags}", at)


def read_value(cursor: Cursor, length: int, flags: int) -> bytes:
    """Read a value, and check that the values of a multi-valued family fill exactly its length."""
    start = cursor.position
    value = cursor.take(length)
    if flags & _MULTI_VALUED:
        values = Cursor(value)
        while values.remaining:
            at = start + values.position
            try:
                values.take(values.u32())
            except MalformedDataError as error:
                raise MalformedDataError("a value of a multi-valued family does not fit", at) from error
    return value
