"""How the state of a region is laid out in shards: `docs/PROTOCOL.md`, section 6."""

from penstock.state.framing import Cursor, MalformedDataError

MAX_PIN_SLOTS = 1024

PinSlots = tuple[int | None, ...]
"""Pinned hash of each shard after the base shards; None for a free pin slot."""


def read_pin_slots(cursor: Cursor) -> PinSlots:
    """Read the pin slots of a layout; raises `MalformedDataError`."""
    at = cursor.position
    pin_slots: list[int | None] = []
    for _ in range(cursor.count("number of pin slots", min(MAX_PIN_SLOTS, cursor.remaining))):
        flag_at = cursor.position
        flag = cursor.byte()
        if flag > 1:
            raise MalformedDataError(f"unknown flag {flag} of a pin slot", flag_at)
        pin_slots.append(_signed(cursor.u32()) if flag else None)
    if pin_slots and pin_slots[-1] is None:
        raise MalformedDataError("the last pin slot is free", at)
    pinned = [hash_ for hash_ in pin_slots if hash_ is not None]
    if len(set(pinned)) != len(pinned):
        raise MalformedDataError("a hash is pinned twice", at)
    return tuple(pin_slots)


def _signed(word: int) -> int:
    return word - (1 << 32) if word >= 1 << 31 else word
