"""The channel between an executor and its sidecar: a ring of memory for each direction, and a socket for records.

One side speaks at a time: who has sent a whole message waits for the other's. Data are copied once on each side.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

from penstock.sidecars.transfer.channel_records import BrokenChannelError, Kind, Record
from penstock.sidecars.transfer.doorbell import COUNTERS_BYTES, Doorbell
from penstock.transport import slices
from penstock.transport.channel import MAX_BYTES
from penstock.transport.deadline import Deadline

SLOTS = 16
"""Slices of a way that may be there and not taken."""
RING_BYTES = SLOTS * slices.SLICE_BYTES
MEMORY_BYTES = 2 * RING_BYTES + COUNTERS_BYTES
"""What the executor sends, what it receives, and how many records were said."""
LANDING_BYTES = 4096 + RING_BYTES
"""Behind these, where the executor asks: what executors of this host answer may be put there by them."""
_NAME = "penstock-channel"
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
_CREDIT_EVERY = SLOTS // 4


class GivenUpError(Exception):
    """The rest of a message does not come; the executor channel can be used further."""


class ChannelMemory:
    """Memory without a name, which the executor maps by way of this process's descriptors.

    It is gone with the last process that has it.

    Parameters
    ----------
    descriptor
        Of a memory file in this process.
    size
        Its bytes.
    """

    def __init__(self, descriptor: int, size: int) -> None:
        self.descriptor = descriptor
        self.bytes = memoryview(mmap.mmap(descriptor, size))

    @classmethod
    def new(cls, *, has_receive_buffer: bool = False) -> ChannelMemory:
        """Make new memory; `has_receive_buffer` where the executor asks on the executor channel."""
        size = _size(has_receive_buffer)
        descriptor = os.memfd_create(_NAME, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(descriptor, size)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
        return cls(descriptor, size)

    @classmethod
    def adopted(cls, offer: Record, *, has_receive_buffer: bool = False) -> ChannelMemory:
        """Take the memory that the executor has from a sidecar before this one, or make new where there is none.

        Raises
        ------
        BrokenChannelError
            The record is no offer.
        """
        size = _size(has_receive_buffer)
        if offer.kind != Kind.LANE or offer.data_bytes != size:
            raise BrokenChannelError(f"{offer}, and memory of {size} bytes was to be offered")
        entry = Path(f"/proc/{offer.number}/fd/{offer.message_bytes}")
        try:
            # Numbers of processes are others in another container.
            if offer.number == 0 or str(entry.readlink()) != f"/memfd:{_NAME} (deleted)":
                return cls.new(has_receive_buffer=has_receive_buffer)
            descriptor = os.open(entry, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return cls.new(has_receive_buffer=has_receive_buffer)
        # Without its seals it could become shorter while it is used.
        if os.fstat(descriptor).st_size == size and fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) == _SEALS:
            return cls(descriptor, size)
        os.close(descriptor)
        return cls.new(has_receive_buffer=has_receive_buffer)

    @property
    def record(self) -> Record:
        """What tells the executor where it is."""
        return Record(Kind.LANE, os.getpid(), self.descriptor, len(self.bytes))


def _size(has_receive_buffer: bool) -> int:
    return MEMORY_BYTES + (LANDING_BYTES if has_receive_buffer else 0)


class ExecutorChannel:
    """One side of an executor channel. For one thread at a time.

    Parameters
    ----------
    connection
        Which it does not close.
    memory
        Of both ways, and perhaps of a receive_buffer.
    is_executor
        Whether this is the executor's side.
    descriptor
        Of the memory in this process.
    """

    def __init__(
        self, connection: socket.socket, memory: memoryview, *, is_executor: bool = False, descriptor: int = 0
    ) -> None:
        self.descriptor = descriptor
        rings = [memory[:RING_BYTES], memory[RING_BYTES : 2 * RING_BYTES]]
        self._out, self._in = rings if is_executor else reversed(rings)
        self._doorbell = Doorbell(connection, memory[2 * RING_BYTES : MEMORY_BYTES], is_executor=is_executor)
        self._sent = 0
        self._taken = 0
        self._received = 0
        self._size = 0

    def send(self, message: bytes | memoryview, deadline: Deadline) -> None:
        """Send a message.

        Raises
        ------
        TransportError, BrokenChannelError
            The other side does not take it.
        """
        data = memoryview(message).cast("B")
        receive_buffer = self.begin(len(data))
        at = 0
        for length in slices.cut(len(data)):
            receive_buffer.part(length, deadline)[:] = data[at : at + length]
            receive_buffer.landed(length)
            at += length

    def begin(self, size: int) -> ExecutorChannel:
        """Begin a message of so many bytes, which is a receive_buffer for a channel's `receive_parts`."""
        self._size = size
        return self

    def part(self, length: int, deadline: Deadline) -> memoryview:
        """Give the slot for the next slice, when there is one."""
        while self._sent - self._taken >= SLOTS:
            record = self._doorbell.next(deadline)
            if record.kind != Kind.TAKEN:
                raise BrokenChannelError(f"a record of kind {record.kind.name} in the middle of a message to it")
            self._credit(record)
        return self._slot(self._out, self._sent, length)

    def landed(self, length: int) -> None:
        """Say that the slice is there."""
        self._doorbell.say(Record(Kind.SLICE, self._sent, self._size, length))
        self._sent += 1

    def give_up(self) -> None:
        """Say that the rest of the message does not come."""
        self._doorbell.say(Record(Kind.GIVEN_UP, self._sent))

    def message(self, deadline: Deadline, most: int) -> bytes:
        """Wait for a message, and copy it.

        Raises
        ------
        TransportError
            None came: `PeerTimeoutError` where the other side may still send one.
        BrokenChannelError
            It is longer than `most`, or none.
        GivenUpError
            Its rest does not come.
        """
        size, parts = self._receive(deadline, lambda: deadline)
        if size > most:
            raise BrokenChannelError(f"a message of {size} bytes, and {most} is the most")
        return b"".join(bytes(part) for part in parts)

    def receive(self, begins: Deadline, slice_s: float) -> tuple[int, Iterator[memoryview]]:
        """Wait for a message; gives its size, and its slices, each valid until the next is asked for.

        All of them must be taken. Errors are those of `message`.

        Parameters
        ----------
        slice_s
            In which each further slice has to come, in seconds from when it is asked for: a reader may be slow.
        """
        return self._receive(begins, lambda: Deadline.after(slice_s))

    def _receive(self, begins: Deadline, next_one: Callable[[], Deadline]) -> tuple[int, Iterator[memoryview]]:
        first = self._slice(begins)
        if first.message_bytes > MAX_BYTES:
            raise BrokenChannelError(f"a message of {first.message_bytes} bytes, and {MAX_BYTES} is the most")
        return first.message_bytes, self._parts(first, next_one)

    def _parts(self, first: Record, next_one: Callable[[], Deadline]) -> Iterator[memoryview]:
        found = first
        for index, length in enumerate(slices.cut(first.message_bytes)):
            if index > 0:
                found = self._slice(next_one())
            if found != Record(Kind.SLICE, self._received, first.message_bytes, length):
                raise BrokenChannelError(f"{found}, and slice {self._received} of {length} bytes was due")
            yield self._slot(self._in, self._received, length)
            self._received += 1
            if self._received % _CREDIT_EVERY == 0:
                self._doorbell.say(Record(Kind.TAKEN, self._received))

    def _slice(self, deadline: Deadline) -> Record:
        while True:
            record = self._doorbell.next(deadline)
            if record.kind == Kind.SLICE:
                return record
            if record.kind == Kind.GIVEN_UP:
                raise GivenUpError
            if record.kind != Kind.TAKEN:
                raise BrokenChannelError(f"a record of kind {record.kind.name}, and a slice was due")
            self._credit(record)

    def _credit(self, record: Record) -> None:
        if not self._taken < record.number <= self._sent:
            raise BrokenChannelError(f"{record.number} slices were taken, of {self._sent}")
        self._taken = record.number

    @staticmethod
    def _slot(ring: memoryview, number: int, length: int) -> memoryview:
        at = number % SLOTS * slices.SLICE_BYTES
        return ring[at : at + length]
