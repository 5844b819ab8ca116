"""The frame that all files share, and the numbers and strings in them: `docs/PROTOCOL.md`, section 2."""

import struct
from enum import IntEnum
from uuid import UUID

import google_crc32c

MAGIC = b"PENSTOCK"
OLDEST_VERSION = 2
"""Format version of the first release."""
HEADER_BYTES = 20
MAX_BYTES = (1 << 31) - 17
"""Largest length of a body or section that is written."""
MAX_SHARDS = 1 << 24

_MORE = 0x80
_LONGEST_VARINT = 9


class Kind(IntEnum):
    """Kind of a file."""

    CHANGELOG = 1
    SNAPSHOTS = 2
    MANIFEST = 3
    ROUTING_VERSION = 4
    FORMAT = 5

    @property
    def has_payload(self) -> bool:
        """Whether bytes may follow the body."""
        return self not in (Kind.ROUTING_VERSION, Kind.FORMAT)

    @property
    def version(self) -> int:
        """Newest version of the format that can be read."""
        return 3 if self is Kind.ROUTING_VERSION else OLDEST_VERSION


class MalformedDataError(Exception):
    """Bytes do not follow the format.

    Parameters
    ----------
    what
        Description of what was found instead.
    at_byte
        Position from the start of the bytes that were read.
    """

    def __init__(self, what: str, at_byte: int = 0) -> None:
        super().__init__(f"{what}, at byte {at_byte}")
        self.what = what
        self.at_byte = at_byte


class NewerFormatError(MalformedDataError):
    """A file has a later format version than this reader supports."""


def crc32c(data: bytes) -> int:
    """Return the CRC32C of bytes."""
    return int(google_crc32c.value(data))


class Cursor:
    """Reads numbers and strings one after the other, and never beyond the end.

    Parameters
    ----------
    data
        Bytes to read.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    @property
    def remaining(self) -> int:
        """Number of bytes that have not been read."""
        return len(self._data) - self.position

    def take(self, count: int) -> bytes:
        """Return the next `count` bytes."""
        start = self.position
        end = start + count
        if end > len(self._data):
            raise MalformedDataError(f"{count} bytes expected, {self.remaining} left", start)
        self.position = end
        return self._data[start:end]

    def byte(self) -> int:
        """Return a `u8`."""
        position = self.position
        if position >= len(self._data):
            raise MalformedDataError("1 byte expected, none left", position)
        self.position = position + 1
        return self._data[position]

    def u32(self) -> int:
        """Return a `u32`."""
        return int(struct.unpack("<I", self.take(4))[0])

    def u64(self) -> int:
        """Return a `u64`."""
        return int(struct.unpack("<Q", self.take(8))[0])

    def uuid(self) -> UUID:
        """Return a UUID, most significant half first."""
        return UUID(int=self.u64() << 64 | self.u64())

    def varint(self) -> int:
        """Return an unsigned LEB128 number of at most 63 bits."""
        start = self.position
        byte = value = self.byte()
        if byte & _MORE:
            value = shift = 0
            while byte & _MORE:
                value |= (byte & ~_MORE) << shift
                shift += 7
                if self.position - start == _LONGEST_VARINT:
                    raise MalformedDataError("number has more than 63 bits", start)
                byte = self.byte()
            value |= byte << shift
            if not byte:
                raise MalformedDataError("number is not in its shortest form", start)
        return value

    def number(self, what: str, least: int, most: int) -> int:
        """Return a varint between two bounds, inclusive."""
        start = self.position
        value = self.varint()
        if not least <= value <= most:
            raise MalformedDataError(f"{what} is {value}, allowed are {least} to {most}", start)
        return value

    def count(self, what: str, limit: int | None = None) -> int:
        """Return a varint that counts items of at least one byte each, or that is bounded by `limit`."""
        return self.number(what, 0, self.remaining if limit is None else limit)

    def string(self) -> str:
        """Return a string."""
        start = self.position
        try:
            return self.take(self.count("length of a name")).decode()
        except UnicodeDecodeError as error:
            raise MalformedDataError("name is not UTF-8", start) from error

    def end(self, what: str) -> None:
        """Check that no bytes follow the last `what`."""
        if self.remaining:
            raise MalformedDataError(f"{self.remaining} bytes follow the last {what}", self.position)


def read_header(header: bytes, kind: Kind) -> tuple[int, int, int]:
    """Check a file's header.

    Parameters
    ----------
    header
        The first 20 bytes of a file, or fewer if the file is shorter.
    kind
        Expected kind of the file.

    Returns
    -------
    tuple
        Version of the format, length (bytes) and CRC32C of the body.

    Raises
    ------
    MalformedDataError
        The header is malformed; :class:`NewerFormatError` if it has a later version.
    """
    if len(header) < HEADER_BYTES:
        raise MalformedDataError("the file ends within the header", len(header))
    cursor = Cursor(header)
    if cursor.take(len(MAGIC)) != MAGIC:
        raise MalformedDataError("the file does not begin with PENSTOCK")
    version = cursor.byte() | cursor.byte() << 8
    if version > kind.version:
        raise NewerFormatError(f"format version {version}, this Penstock reads up to {kind.version}", 8)
    if version < OLDEST_VERSION:
        what = f"format version {version} is from before the first release; this Penstock reads {OLDEST_VERSION}"
        raise MalformedDataError(what, 8)
    if (found := cursor.byte()) != kind:
        raise MalformedDataError(f"kind of file {found}, expected {kind.value}", 10)
    if codec := cursor.byte():
        raise MalformedDataError(f"unknown codec {codec}", 11)
    if (length := cursor.u32()) > MAX_BYTES:
        raise MalformedDataError(f"body has {length} bytes, at most {MAX_BYTES} are allowed", 12)
    return version, length, cursor.u32()


def check(data: bytes, expected: int, what: str, at_byte: int) -> bytes:
    """Return the bytes if their CRC32C is the expected one; raise :class:`MalformedDataError` otherwise."""
    if (found := crc32c(data)) != expected:
        raise MalformedDataError(f"checksum of the {what} is {found:08x}, expected {expected:08x}", at_byte)
    return data
