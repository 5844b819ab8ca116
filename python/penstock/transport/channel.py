"""Messages between two peers, in order, over anything that carries slices.

A transport knows bytes, peers and deadlines. It does not know what messages are about.
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Protocol

from penstock.transport import slices
from penstock.transport.deadline import Deadline
from penstock.transport.errors import PeerBrokenError, TransportError

MAX_BYTES = 1 << 30
"""Of a message."""
Message = bytes | bytearray | memoryview


class SliceSender(Protocol):
    """The way out. Waits where the peer does not keep up."""

    def send(self, header: bytes, data: memoryview, deadline: Deadline) -> None:
        """Send a slice; `data` is free again when this returns."""


class SliceReceiver(Protocol):
    """The way in."""

    def header(self, deadline: Deadline) -> bytes:
        """Wait for a slice; gives its header."""

    def data(self, into: memoryview, deadline: Deadline) -> None:
        """Fetch the slice's data."""


class ReceiveBuffer(Protocol):
    """Takes a message slice by slice."""

    def part(self, length: int, deadline: Deadline) -> memoryview:
        """Give memory for the data of the next slice; may wait for room."""

    def landed(self, length: int) -> None:
        """Take note that the slice is there, as the peer sent it."""


class Channel:
    """A connection with one peer. One thread may send while another receives.

    Parameters
    ----------
    peer
        Who it is, in words.
    close
        Ends the connection, and wakes threads that wait for the peer; called once.
    release
        Frees its descriptors. Called when no thread uses the channel any more: until then their numbers must not be
        another's.
    sealed
        Whether sender and receiver encrypt the data, and find out where they were changed.
    """

    def __init__(
        self,
        peer: str,
        sender: SliceSender,
        receiver: SliceReceiver,
        close: Callable[[], None],
        release: Callable[[], None],
        *,
        sealed: bool = False,
    ) -> None:
        self.peer = peer
        self._sender = sender
        self._receiver = receiver
        self._close = close
        self._sealed = sealed
        self._sent = 0
        self._received = 0
        self._failed: TransportError | None = None
        self._closed = False
        weakref.finalize(self, release).atexit = False

    def send(self, message: Message, deadline: Deadline) -> None:
        """Send a message, of 0 bytes to `MAX_BYTES`.

        Raises
        ------
        ValueError
            It is longer.
        TransportError
            It did not get through, or an earlier one did not.
        """
        data = memoryview(message).cast("B")
        self.send_parts(len(data), _parts(data), deadline)

    def send_parts(self, size: int, parts: Iterable[memoryview], deadline: Deadline) -> None:
        """Send a message that is made while it is sent.

        Parameters
        ----------
        size
            Of the whole message, in bytes.
        parts
            As `slices.cut` cuts it. A part is no longer used when the next one is asked for. What goes wrong in making
            one ends the channel: the peer waits for the rest.

        Raises
        ------
        ValueError
            It is longer than `MAX_BYTES`, or the parts are others.
        TransportError
            It did not get through, or an earlier one did not.
        """
        if size > MAX_BYTES:
            raise ValueError(f"a message of {size} bytes, and {MAX_BYTES} is the most")
        self._check()
        try:
            for part, length in zip(parts, slices.cut(size), strict=True):
                if len(part) != length:
                    raise ValueError(f"a part of {len(part)} bytes, and {length} were due")
                self._sender.send(slices.encode(self._sent, size, part, sealed=self._sealed), part, deadline)
                self._sent += 1
        except TransportError as error:
            self._failed = error
            raise
        except BaseException as error:
            self._failed = PeerBrokenError(f"a message to {self.peer} was not finished: {error}")
            self.close()
            raise

    def receive(
        self, deadline: Deadline, into: Callable[[int], memoryview] | None = None, most: int = MAX_BYTES
    ) -> memoryview:
        """Wait for a message.

        Parameters
        ----------
        most
            Bytes that it may have: who sends more breaks off the connection.
        into
            Gives the memory for a message of so many bytes; new memory where there is no such function.

        Raises
        ------
        TransportError
            None came, or an earlier one did not. Where nothing of it had come by the deadline, the channel can be used
            further.
        """
        whole = _Whole(into or _memory)
        self.receive_parts(deadline, whole.begin, most)
        return whole.message

    def receive_parts(self, deadline: Deadline, begin: Callable[[int], ReceiveBuffer], most: int = MAX_BYTES) -> None:
        """Wait for a message, and hand it over while it comes.

        Parameters
        ----------
        begin
            Takes the size of the message in bytes; gives what takes its slices.
        most
            As in `receive`.

        Raises
        ------
        TransportError
            As with `receive`.
        """
        self._check()
        first = self._receiver.header(deadline)
        try:
            self._rest(self._decoded(first), deadline, begin, most)
        except TransportError as error:
            self._failed = error
            raise
        except BaseException as error:
            self._failed = PeerBrokenError(f"a message from {self.peer} was not taken: {error}")
            self.close()
            raise

    @property
    def usable(self) -> bool:
        """Whether a message may be sent or waited for: not after one that was not finished."""
        return self._failed is None and not self._closed

    def close(self) -> None:
        """End the connection; may be called again, and by any thread."""
        if not self._closed:
            self._closed = True
            self._close()

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check(self) -> None:
        if self._failed is not None:
            raise self._failed

    def _decoded(self, header: bytes) -> slices.Slice:
        return slices.decode(header, self._received, sealed=self._sealed)

    def _rest(self, first: slices.Slice, deadline: Deadline, begin: Callable[[int], ReceiveBuffer], most: int) -> None:
        if first.message_bytes > most:
            raise PeerBrokenError(f"a message of {first.message_bytes} bytes, and {most} is the most")
        receive_buffer = begin(first.message_bytes)
        found = first
        for index, length in enumerate(slices.cut(first.message_bytes)):
            if index > 0:
                found = self._decoded(self._receiver.header(deadline))
            if (found.message_bytes, found.data_bytes) != (first.message_bytes, length):
                raise PeerBrokenError(f"slice {found.number} is of another message")
            part = receive_buffer.part(length, deadline)
            self._receiver.data(part, deadline)
            found.check(part)
            self._received += 1
            receive_buffer.landed(length)


class Listener(ABC):
    """Where peers connect to."""

    @property
    @abstractmethod
    def address(self) -> str:
        """What a peer needs to know to connect."""

    @abstractmethod
    def accept(self, deadline: Deadline) -> Channel:
        """Wait for a peer that proves itself; those that do not are turned away.

        Raises
        ------
        PeerTimeoutError
            None came.
        """

    @abstractmethod
    def close(self) -> None:
        """Take no more peers; channels stay."""


class Transport(ABC):
    """A way to reach peers."""

    name: str
    encrypts: bool
    """Whether it can."""

    @abstractmethod
    def listen(self) -> Listener:
        """Make a place that peers connect to."""

    @abstractmethod
    def connect(self, address: str, deadline: Deadline) -> Channel:
        """Connect to a peer.

        Raises
        ------
        TransportError
            There is none, it does not answer, or it is of another application.
        """


class _Whole:
    """A message in one piece of memory."""

    message: memoryview

    def __init__(self, memory: Callable[[int], memoryview]) -> None:
        self._memory = memory
        self._at = 0

    def begin(self, size: int) -> ReceiveBuffer:
        self.message = self._memory(size)
        return self

    def part(self, length: int, _: Deadline) -> memoryview:
        return self.message[self._at : self._at + length]

    def landed(self, length: int) -> None:
        self._at += length


def _memory(size: int) -> memoryview:
    return memoryview(bytearray(size))


def _parts(data: memoryview) -> Iterable[memoryview]:
    at = 0
    for length in slices.cut(len(data)):
        yield data[at : at + length]
        at += length
