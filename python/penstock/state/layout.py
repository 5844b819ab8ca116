"""How the state of a region is laid out in shards: `docs/PROTOCOL.md`, section 6."""

from penstock.state.framing import Cursor, MalformedDataError

MOST_PLACES = 1024

Places = tuple[int | None, ...]
"""The pinned hash of each shard behind the base shards; None for a place that is free."""


def read_places(cursor: Cursor) -> Places:
    """Read the places of pinned hashes; raises `MalformedDataError`."""
    at = cursor.position
    places: list[int | None] = []
    for _ in range(cursor.count("number of places", min(MOST_PLACES, cursor.remaining))):
        flag_at = cursor.position
        flag = cursor.byte()
        if flag > 1:
            raise MalformedDataError(f"unknown flag {flag} of a place", flag_at)
        places.append(_signed(cursor.u32()) if flag else None)
    if places and places[-1] is None:
        raise MalformedDataError("the last place is free", at)
    pinned = [hash_ for hash_ in places if hash_ is not None]
    if len(set(pinned)) != len(pinned):
        raise MalformedDataError("a hash is pinned twice", at)
    return tuple(places)


def _signed(word: int) -> int:
    return word - (1 << 32) if word >= 1 << 31 else word
