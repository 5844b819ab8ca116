"""Frames of the planner sidecar's connection: `docs/PROTOCOL.md`, section 9. Encodes and decodes bytes, without I/O."""

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
"""Length of header and checksum, which are read before the lengths of head and body are known."""
MAX_HEAD_BYTES = 1 << 20
MAX_BODY_BYTES = 64 << 20


class Kind(IntEnum):
    """Kind of a frame."""

    HELLO = 1
    WELCOME = 2
    MEASURED = 3
    PLANNED = 4
    REFUSED = 5
    DEMAND = 6
    SCALED = 7


class BrokenFrameError(Exception):
    """Bytes are not a valid frame, so nothing that follows on the connection can be trusted."""


@dataclass(frozen=True)
class Frame:
    """A message.

    Parameters
    ----------
    kind
        Kind of the frame.
    number
        Number of the question; its answer has the same number.
    head
        JSON object.
    body
        Arrow IPC stream, or empty.
    """

    kind: Kind
    number: int
    head: dict[str, Any] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True)
class Prefix:
    """Content of the first bytes of a frame.

    Parameters
    ----------
    header
        Bytes before the checksum.
    kind, number
        Kind and number of the frame.
    head_bytes, body_bytes
        Lengths of head and body, which follow.
    checksum
        Checksum of header, head and body.
    """

    header: bytes
    kind: Kind
    number: int
    head_bytes: int
    body_bytes: int
    checksum: int


def encode(frame: Frame) -> bytes:
    """Encode a frame.

    Raises
    ------
    ValueError
        Head or body are too long.
    """
    head = json.dumps(frame.head, separators=(",", ":"), allow_nan=False).encode()
    if len(head) > MAX_HEAD_BYTES or len(frame.body) > MAX_BODY_BYTES:
        raise ValueError(f"head or body of a frame are too long: {len(head)} and {len(frame.body)} bytes")
    header = HEADER.pack(MAGIC, VERSION, frame.kind, 0, frame.number, len(head), len(frame.body))
    rest = head + frame.body
    return header + struct.pack("<I", _checksum(header, rest)) + rest


def decode_prefix(data: bytes) -> Prefix:
    """Decode the first `PREFIX_BYTES` bytes of a frame.

    Raises
    ------
    BrokenFrameError
        The bytes are not the beginning of a frame.
    """
    header = data[: HEADER.size]
    magic, version, kind, zero, number, head_bytes, body_bytes = HEADER.unpack(header)
    if magic != MAGIC or zero != 0:
        raise BrokenFrameError(f"bytes {data[:8].hex()} are not the beginning of a frame")
    if version != VERSION:
        raise BrokenFrameError(f"protocol version {version}, expected {VERSION}")
    if head_bytes > MAX_HEAD_BYTES or body_bytes > MAX_BODY_BYTES:
        raise BrokenFrameError(f"head or body of a frame are too long: {head_bytes} and {body_bytes} bytes")
    try:
        known = Kind(kind)
    except ValueError:
        raise BrokenFrameError(f"unknown frame kind {kind}") from None
    return Prefix(header, known, number, head_bytes, body_bytes, struct.unpack("<I", data[HEADER.size :])[0])


def decode_rest(prefix: Prefix, rest: bytes) -> Frame:
    """Decode the bytes that follow a prefix, whose number the prefix determines.

    Raises
    ------
    BrokenFrameError
        The checksum is wrong, or the head is not a JSON object.
    """
    if len(rest) != prefix.head_bytes + prefix.body_bytes:
        expected = prefix.head_bytes + prefix.body_bytes
        raise BrokenFrameError(f"head and body have {len(rest)} bytes, expected {expected}")
    if _checksum(prefix.header, rest) != prefix.checksum:
        raise BrokenFrameError("the checksum of a frame is wrong")
    try:
        head = json.loads(rest[: prefix.head_bytes].decode())
    except (ValueError, RecursionError) as error:
        raise BrokenFrameError(f"the head of a frame is not JSON: {error}") from None
    if not isinstance(head, dict):
        raise BrokenFrameError("the head of a frame is not a JSON object")
    return Frame(prefix.kind, prefix.number, head, rest[prefix.head_bytes :])


def _checksum(header: bytes, rest: bytes) -> int:
    return int(google_crc32c.extend(google_crc32c.value(header), rest))
