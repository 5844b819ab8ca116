"""Slices of messages as they are sent: `docs/PROTOCOL.md`, section 11. Encodes and decodes bytes, without I/O."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import google_crc32c
import numpy as np

from penstock.transport.errors import PeerBrokenError

VERSION = 2
MAGIC = b"PSTS"
HEADER = struct.Struct("<4sBBHQQII")
_CHECKED_BYTES = HEADER.size - 4
SLICE_BYTES = 256 << 10


@dataclass(frozen=True)
class Slice:
    """Content of a slice's header.

    Parameters
    ----------
    number
        Number of the slice in its direction, from 0.
    message_bytes
        Length of the whole message.
    data_bytes
        Length of the slice.
    header
        Bytes of the header that are checked together with the data.
    checksum
        Checksum of header and data; None if a seal protects them.
    """

    number: int
    message_bytes: int
    data_bytes: int
    header: bytes
    checksum: int | None

    def check(self, data: memoryview) -> None:
        """Compare data with the checksum.

        Raises
        ------
        PeerBrokenError
            The checksum does not match.
        """
        if self.checksum is not None and _checksum(self.header, data) != self.checksum:
            raise PeerBrokenError(f"the checksum of slice {self.number} is wrong")


def cut(message_bytes: int) -> list[int]:
    """Return the lengths of a message's slices; an empty message has one slice."""
    full, rest = divmod(message_bytes, SLICE_BYTES)
    return [SLICE_BYTES] * full + ([rest] if rest or not full else [])


def encode(number: int, message_bytes: int, data: memoryview, *, sealed: bool = False) -> bytes:
    """Encode the header of a slice.

    Parameters
    ----------
    number
        Number of the slice in its direction.
    message_bytes
        Length of the whole message.
    data
        Data of the slice.
    sealed
        Whether the data are sent encrypted. The header is not encrypted, and must then have no checksum, which would
        confirm a guess of the data.
    """
    if sealed:
        return HEADER.pack(MAGIC, VERSION, 0, 0, number, message_bytes, len(data), 0)
    checked = HEADER.pack(MAGIC, VERSION, 0, 0, number, message_bytes, len(data), 0)[:_CHECKED_BYTES]
    return checked + struct.pack("<I", _checksum(checked, data))


def decode(header: bytes, number: int, *, sealed: bool = False) -> Slice:
    """Decode a header.

    Parameters
    ----------
    header
        Bytes of the header.
    number
        Expected number of the slice.
    sealed
        As in `encode`.

    Raises
    ------
    PeerBrokenError
        The header is invalid, or belongs to another slice.
    """
    magic, version, flags, zero, found, message_bytes, data_bytes, checksum = HEADER.unpack(header)
    if (magic, version, flags, zero) != (MAGIC, VERSION, 0, 0):
        raise PeerBrokenError(f"bytes {header[:8].hex()} are not the beginning of a slice")
    if found != number:
        raise PeerBrokenError(f"expected slice {number}, found {found}")
    if data_bytes > SLICE_BYTES:
        raise PeerBrokenError(f"a slice has {data_bytes} bytes, at most {SLICE_BYTES} are allowed")
    if sealed and checksum != 0:
        raise PeerBrokenError(f"slice {found} is sealed, but has a checksum")
    return Slice(found, message_bytes, data_bytes, header[:_CHECKED_BYTES], None if sealed else checksum)


def _checksum(header: bytes, data: memoryview) -> int:
    header_crc = int(google_crc32c.value(header))
    # The library only accepts read-only views, so the data are passed as an array.
    return int(google_crc32c.extend(header_crc, np.frombuffer(data, dtype=np.uint8))) if len(data) else header_crc
