"""Frames of the sidecar's connection: `docs/PROTOCOL.md`, section 9. Bytes in, bytes out; it does no I/O."""

import json
import struct
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import google_crc32c

VERSION = 7
MAGIC = b"PSTK"
HEADER = struct.Struct("<4sBBHQII")
PREFIX_BYTES = HEADER.size + 4
"""Header and checksum: what is read before lengths are known."""
MAX_HEAD_BYTES = 1 << 20
MAX_BODY_BYTES = 64 << 20


class Kind(IntEnum):
    """What a frame is."""

    HELLO = 1
    WELCOME = 2
    MEASURED = 3
    PLANNED = 4
    REFUSED = 5
    DEMAND = 6
    SCALED = 7


class BrokenFrameError(Exception):
    """Bytes that are no frame: nothing that follows on the connection can be trusted."""


@dataclass(frozen=True)
class Frame:
    """A message.

    Parameters
    ----------
    kind
        What it is.
    number
        Of the question; the answer has the same.
    head
        JSON object.
    body
        Arrow IPC stream, or nothing.
    """

    kind: Kind
    number: int
    head: dict[str, Any] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True)
class Prefix:
    """What the first bytes of a frame tell.

    Parameters
    ----------
    header
        The bytes before the checksum.
    kind, number
        Of the frame.
    head_bytes, body_bytes
        Lengths of what follows.
    checksum
        Of the header, the head and the body.
    """

    header: bytes
    kind: Kind
    number: int
    head_bytes: int
    body_bytes: int
    checksum: int


def encode(frame: Frame) -> bytes:
    """Write a frame.

    Raises
    ------
    ValueError
        Head or body are longer than a frame may have.
    """
    head = json.dumps(frame.head, separators=(",", ":"), allow_nan=False).encode()
    if len(head) > MAX_HEAD_BYTES or len(frame.body) > MAX_BODY_BYTES:
        raise ValueError(f"a frame of {len(head)} and {len(frame.body)} bytes is too long")
    header = HEADER.pack(MAGIC, VERSION, frame.kind, 0, frame.number, len(head), len(frame.body))
    rest = head + frame.body
    return header + struct.pack("<I", _checksum(header, rest)) + rest


def decode_prefix(data: bytes) -> Prefix:
    """Read the first `PREFIX_BYTES` bytes of a frame.

    Raises
    ------
    BrokenFrameError
        They are not of a frame.
    """
    header = data[: HEADER.size]
    magic, version, kind, zero, number, head_bytes, body_bytes = HEADER.unpack(header)
    if magic != MAGIC or zero != 0:
        raise BrokenFrameError(f"no frame begins with {data[:8].hex()}")
    if version != VERSION:
        raise BrokenFrameError(f"protocol version {version}, expected {VERSION}")
    if head_bytes > MAX_HEAD_BYTES or body_bytes > MAX_BODY_BYTES:
        raise BrokenFrameError(f"a frame of {head_bytes} and {body_bytes} bytes is too long")
    try:
        known = Kind(kind)
    except ValueError:
        raise BrokenFrameError(f"frames of kind {kind} are not known") from None
    return Prefix(header, known, number, head_bytes, body_bytes, struct.unpack("<I", data[HEADER.size :])[0])


def decode_rest(prefix: Prefix, rest: bytes) -> Frame:
    """Read what follows a prefix: as many bytes as it says.

    Raises
    ------
    BrokenFrameError
        The checksum is another, or the head is no JSON object.
    """
    if len(rest) != prefix.head_bytes + prefix.body_bytes:
        raise BrokenFrameError(f"{len(rest)} bytes, expected {prefix.head_bytes + prefix.body_bytes}")
    if _checksum(prefix.header, rest) != prefix.checksum:
        raise BrokenFrameError("the checksum of a frame is wrong")
    try:
        head = json.loads(rest[: prefix.head_bytes].decode())
    except (ValueError, RecursionError) as error:
        raise BrokenFrameError(f"the head of a frame is no JSON: {error}") from None
    if not isinstance(head, dict):
        raise BrokenFrameError("the head of a frame is no JSON object")
    return Frame(prefix.kind, prefix.number, head, rest[prefix.head_bytes :])


def _checksum(header: bytes, rest: bytes) -> int:
    return int(google_crc32c.extend(google_crc32c.value(header), rest))
