"""Records of the channel between an executor and its sidecar: `docs/PROTOCOL.md`, section 12. Encodes bytes, no I/O."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

import google_crc32c

VERSION = 4
MAGIC = b"PSTL"
RECORD = struct.Struct("<4sBBHQQII")
_CHECKED_BYTES = RECORD.size - 4


class Kind(IntEnum):
    """Kind of a record."""

    SLICE = 1
    """The next slice of a message is in its slot."""
    TAKEN = 2
    """The receiver has taken this many slices."""
    GIVEN_UP = 3
    """The rest of the message will not follow."""
    CHANNEL_MEMORY = 4
    """Location of the memory of a new executor channel."""


class BrokenChannelError(Exception):
    """The other side sent something invalid, so nothing that follows can be trusted."""


class Record(NamedTuple):
    """A record of 32 bytes.

    Parameters
    ----------
    kind
        Kind of the record.
    number
        Number of the slice, from 0; number of slices taken; or id of the process that has the channel's memory.
    message_bytes
        Length of the whole message, or descriptor of the channel's memory.
    data_bytes
        Length of the slice, or size of the channel's memory.
    """

    kind: Kind
    number: int
    message_bytes: int = 0
    data_bytes: int = 0


def encode(record: Record) -> bytes:
    """Encode a record."""
    checked = RECORD.pack(MAGIC, VERSION, record.kind, 0, record.number, record.message_bytes, record.data_bytes, 0)[
        :_CHECKED_BYTES
    ]
    return checked + struct.pack("<I", google_crc32c.value(checked))


def decode(data: bytes) -> Record:
    """Decode a record.

    Raises
    ------
    BrokenChannelError
        The bytes are not a valid record.
    """
    magic, version, kind, zero, number, message_bytes, data_bytes, checksum = RECORD.unpack(data)
    if (magic, version, zero) != (MAGIC, VERSION, 0):
        raise BrokenChannelError(f"bytes {data[:8].hex()} are not the beginning of a record")
    if google_crc32c.value(data[:_CHECKED_BYTES]) != checksum:
        raise BrokenChannelError("the checksum of a record is wrong")
    try:
        return Record(Kind(kind), number, message_bytes, data_bytes)
    except ValueError:
        raise BrokenChannelError(f"unknown record kind {kind}") from None
