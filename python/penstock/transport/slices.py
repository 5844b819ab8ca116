"""Slices of messages as they are sent: `docs/PROTOCOL.md`, section 11. Bytes in, bytes out."""

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
    """What a header tells.

    Parameters
    ----------
    number
        Of the slice on its way, from 0.
    message_bytes
        Of the whole message.
    data_bytes
        Of the slice.
    header
        The bytes that are checked with the data.
    checksum
        Of these, and of the data; None where a seal checks them.
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
            They are of something else.
        """
        if self.checksum is not None and _checksum(self.header, data) != self.checksum:
            raise PeerBrokenError(f"the checksum of slice {self.number} is wrong")


def cut(message_bytes: int) -> list[int]:
    """Lengths of a message's slices; one where it is empty."""
    whole, rest = divmod(message_bytes, SLICE_BYTES)
    return [SLICE_BYTES] * whole + ([rest] if rest or not whole else [])


def encode(number: int, message_bytes: int, data: memoryview, *, sealed: bool = False) -> bytes:
    """Write the header of a slice.

    Parameters
    ----------
    sealed
        Whether the data are encrypted on their way. The header is not, and must tell nothing of them: a checksum would
        confirm what somebody guesses.
    """
    if sealed:
        return HEADER.pack(MAGIC, VERSION, 0, 0, number, message_bytes, len(data), 0)
    checked = HEADER.pack(MAGIC, VERSION, 0, 0, number, message_bytes, len(data), 0)[:_CHECKED_BYTES]
    return checked + struct.pack("<I", _checksum(checked, data))


def decode(header: bytes, number: int, *, sealed: bool = False) -> Slice:
    """Read a header.

    Parameters
    ----------
    number
        That the slice must have.
    sealed
        As in `encode`.

    Raises
    ------
    PeerBrokenError
        It is none, or that of another slice.
    """
    magic, version, flags, zero, found, message_bytes, data_bytes, checksum = HEADER.unpack(header)
    if (magic, version, flags, zero) != (MAGIC, VERSION, 0, 0):
        raise PeerBrokenError(f"no slice begins with {header[:8].hex()}")
    if found != number:
        raise PeerBrokenError(f"slice {found} came, and {number} was due")
    if data_bytes > SLICE_BYTES:
        raise PeerBrokenError(f"a slice of {data_bytes} bytes, and {SLICE_BYTES} is the most")
    if sealed and checksum != 0:
        raise PeerBrokenError(f"slice {found} is sealed, and has a checksum")
    return Slice(found, message_bytes, data_bytes, header[:_CHECKED_BYTES], None if sealed else checksum)


def _checksum(header: bytes, data: memoryview) -> int:
    of_header = int(google_crc32c.value(header))
    # Not of the view itself, which the library would only take if nobody could write to it.
    return int(google_crc32c.extend(of_header, np.frombuffer(data, dtype=np.uint8))) if len(data) else of_header
