"""The channel between an executor and its sidecar: a ring of memory for each direction, and a socket for records.

Only one side sends at a time: after a whole message, the sender waits for a message of the other side. Data are copied
once on each side.
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
"""Number of slots of a ring: slices that may be written and not yet taken."""
RING_BYTES = SLOTS * slices.SLICE_BYTES
MEMORY_BYTES = 2 * RING_BYTES + COUNTERS_BYTES
"""Size of both rings, and of the counters of records."""
RECEIVE_BUFFER_BYTES = 4096 + RING_BYTES
"""Size of the receive buffer after the rings, on channels to ask on. Executors of this host may write answers there."""
_NAME = "penstock-channel"
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
_CREDIT_EVERY = SLOTS // 4


class GivenUpError(Exception):
    """The rest of a message will not follow. The executor channel remains usable."""


class ChannelMemory:
    """Memory without a name, which the executor maps through this process's descriptors.

    It is freed with the last process that has it open.

    Parameters
    ----------
    descriptor
        Descriptor of a memory file in this process.
    size
        Size of the file in bytes.
    """

    def __init__(self, descriptor: int, size: int) -> None:
        self.descriptor = descriptor
        self.bytes = memoryview(mmap.mmap(descriptor, size))

    @classmethod
    def new(cls, *, has_receive_buffer: bool = False) -> ChannelMemory:
        """Create new memory. `has_receive_buffer` is true if the executor asks on the executor channel."""
        size = _size(has_receive_buffer)
        descriptor = os.memfd_create(_NAME, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(descriptor, size)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
        return cls(descriptor, size)

    @classmethod
    def adopted(cls, offer: Record, *, has_receive_buffer: bool = False) -> ChannelMemory:
        """Take over the memory that the executor has from an earlier sidecar, or create new memory if there is none.

        Raises
        ------
        BrokenChannelError
            The record is not a valid offer.
        """
        size = _size(has_receive_buffer)
        if offer.kind != Kind.CHANNEL_MEMORY or offer.data_bytes != size:
            raise BrokenChannelError(f"expected an offer of {size} bytes of memory, found {offer}")
        entry = Path(f"/proc/{offer.number}/fd/{offer.message_bytes}")
        try:
            # In another container, process ids have a different meaning.
            if offer.number == 0 or str(entry.readlink()) != f"/memfd:{_NAME} (deleted)":
                return cls.new(has_receive_buffer=has_receive_buffer)
            descriptor = os.open(entry, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return cls.new(has_receive_buffer=has_receive_buffer)
        # Without its seals the file could be truncated while it is in use.
        if os.fstat(descriptor).st_size == size and fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) == _SEALS:
            return cls(descriptor, size)
        os.close(descriptor)
        return cls.new(has_receive_buffer=has_receive_buffer)

    @property
    def record(self) -> Record:
        """Record that tells the executor where the memory is."""
        return Record(Kind.CHANNEL_MEMORY, os.getpid(), self.descriptor, len(self.bytes))


def _size(has_receive_buffer: bool) -> int:
    return MEMORY_BYTES + (RECEIVE_BUFFER_BYTES if has_receive_buffer else 0)


class ExecutorChannel:
    """One side of an executor channel; for one thread at a time.

    Parameters
    ----------
    connection
        Socket to the other side. The channel does not close it.
    memory
        Memory with the rings of both directions, and possibly a receive buffer.
    is_executor
        Whether this is the executor's side.
    descriptor
        Descriptor of the memory in this process.
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
            The other side does not take the message.
        """
        data = memoryview(message).cast("B")
        receive_buffer = self.begin(len(data))
        at = 0
        for length in slices.cut(len(data)):
            receive_buffer.part(length, deadline)[:] = data[at : at + length]
            receive_buffer.received(length)
            at += length

    def begin(self, size: int) -> ExecutorChannel:
        """Begin a message of `size` bytes; returns a receive buffer for `Channel.receive_parts`."""
        self._size = size
        return self

    def part(self, length: int, deadline: Deadline) -> memoryview:
        """Return the slot for the next slice; waits until one is free."""
        while self._sent - self._taken >= SLOTS:
            record = self._doorbell.next(deadline)
            if record.kind != Kind.TAKEN:
                raise BrokenChannelError(f"unexpected record of kind {record.kind.name} while sending a message")
            self._credit(record)
        return self._slot(self._out, self._sent, length)

    def received(self, length: int) -> None:
        """Announce that the slice is in its slot."""
        self._doorbell.say(Record(Kind.SLICE, self._sent, self._size, length))
        self._sent += 1

    def give_up(self) -> None:
        """Announce that the rest of the message will not follow."""
        self._doorbell.say(Record(Kind.GIVEN_UP, self._sent))

    def message(self, deadline: Deadline, most: int) -> bytes:
        """Wait for a message, and copy it.

        Raises
        ------
        TransportError
            No message was received. After `PeerTimeoutError` the other side may still send one.
        BrokenChannelError
            The message is invalid or longer than `most`.
        GivenUpError
            The rest of the message will not follow.
        """
        size, parts = self._receive(deadline, lambda: deadline)
        if size > most:
            raise BrokenChannelError(f"a message has {size} bytes, at most {most} are allowed")
        return b"".join(bytes(part) for part in parts)

    def receive(self, begins: Deadline, slice_s: float) -> tuple[int, Iterator[memoryview]]:
        """Wait for a message; return its size, and its slices, each valid until the next one is requested.

        All slices must be taken. Errors are those of `message`.

        Parameters
        ----------
        begins
            Deadline for the first slice.
        slice_s
            Time limit for each further slice, in seconds from the request for it, because the reader may be slow.
        """
        return self._receive(begins, lambda: Deadline.after(slice_s))

    def _receive(self, begins: Deadline, slice_deadline: Callable[[], Deadline]) -> tuple[int, Iterator[memoryview]]:
        first = self._slice(begins)
        if first.message_bytes > MAX_BYTES:
            raise BrokenChannelError(f"a message has {first.message_bytes} bytes, at most {MAX_BYTES} are allowed")
        return first.message_bytes, self._parts(first, slice_deadline)

    def _parts(self, first: Record, slice_deadline: Callable[[], Deadline]) -> Iterator[memoryview]:
        found = first
        for index, length in enumerate(slices.cut(first.message_bytes)):
            if index > 0:
                found = self._slice(slice_deadline())
            if found != Record(Kind.SLICE, self._received, first.message_bytes, length):
                raise BrokenChannelError(f"expected slice {self._received} of {length} bytes, found {found}")
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
                raise BrokenChannelError(f"expected a slice, found a record of kind {record.kind.name}")
            self._credit(record)

    def _credit(self, record: Record) -> None:
        if not self._taken < record.number <= self._sent:
            raise BrokenChannelError(f"{record.number} slices were reported as taken, but {self._sent} were sent")
        self._taken = record.number

    @staticmethod
    def _slot(ring: memoryview, number: int, length: int) -> memoryview:
        at = number % SLOTS * slices.SLICE_BYTES
        return ring[at : at + length]
