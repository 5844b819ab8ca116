"""Records of the channel between an executor and its sidecar: `docs/PROTOCOL.md`, section 12. Bytes in, bytes out."""

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
    """What a record is."""

    SLICE = 1
    """The next slice of a message is in its slot."""
    TAKEN = 2
    """So many slices were taken."""
    GIVEN_UP = 3
    """The rest of the message does not come."""
    LANE = 4
    """Where a new executor channel's memory is."""


class BrokenChannelError(Exception):
    """What came is nothing that the other side sends: nothing that follows can be trusted."""


class Record(NamedTuple):
    """Of 32 bytes.

    Parameters
    ----------
    kind
        What it is.
    number
        Of the slice, from 0; of slices that were taken; of the process that has a new executor channel's memory.
    message_bytes
        Of the whole message; descriptor of a new executor channel's memory.
    data_bytes
        Of the slice; bytes of a new executor channel's memory.
    """

    kind: Kind
    number: int
    message_bytes: int = 0
    data_bytes: int = 0


def encode(record: Record) -> bytes:
    """Write a record."""
    checked = RECORD.pack(MAGIC, VERSION, record.kind, 0, record.number, record.message_bytes, record.data_bytes, 0)[
        :_CHECKED_BYTES
    ]
    return checked + struct.pack("<I", google_crc32c.value(checked))


def decode(data: bytes) -> Record:
    """Read a record.

    Raises
    ------
    BrokenChannelError
        It is none.
    """
    magic, version, kind, zero, number, message_bytes, data_bytes, checksum = RECORD.unpack(data)
    if (magic, version, zero) != (MAGIC, VERSION, 0):
        raise BrokenChannelError(f"no record begins with {data[:8].hex()}")
    if google_crc32c.value(data[:_CHECKED_BYTES]) != checksum:
        raise BrokenChannelError("the checksum of a record is wrong")
    try:
        return Record(Kind(kind), number, message_bytes, data_bytes)
    except ValueError:
        raise BrokenChannelError(f"records of kind {kind} are not known") from None
