"""Messages between two peers, in order, over any carrier of slices.

A transport handles bytes, peers and deadlines. It does not interpret messages.
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import ClassVar, Protocol

from penstock.transport import slices
from penstock.transport.deadline import Deadline
from penstock.transport.errors import PeerBrokenError, TransportError

MAX_BYTES = 1 << 30
"""Largest length of a message."""
Message = bytes | bytearray | memoryview


class SliceSender(Protocol):
    """Outgoing direction of a channel. Waits if the peer does not keep up."""

    def send(self, header: bytes, data: memoryview, deadline: Deadline) -> None:
        """Send a slice; `data` may be reused when this returns."""


class SliceReceiver(Protocol):
    """Incoming direction of a channel."""

    def header(self, deadline: Deadline) -> bytes:
        """Wait for a slice, and return its header."""

    def data(self, into: memoryview, deadline: Deadline) -> None:
        """Read the slice's data."""


class ReceiveBuffer(Protocol):
    """Receives a message slice by slice."""

    def part(self, length: int, deadline: Deadline) -> memoryview:
        """Return memory for the data of the next slice; may wait for space."""

    def received(self, length: int) -> None:
        """Accept the slice, whose data are complete and checked."""


class Channel:
    """A connection with one peer. One thread may send while another receives.

    Parameters
    ----------
    peer
        Description of the peer.
    sender, receiver
        The two directions of the connection.
    close
        Ends the connection, and wakes threads that wait for the peer. Called once.
    release
        Frees the connection's descriptors. Called when no thread uses the channel any more, because a closed
        descriptor's number may be reused at once.
    sealed
        Whether sender and receiver encrypt the data, and detect changes.
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
        """Send a message of 0 to `MAX_BYTES` bytes.

        Raises
        ------
        ValueError
            The message is too long.
        TransportError
            The message, or an earlier one, did not get through.
        """
        data = memoryview(message).cast("B")
        self.send_parts(len(data), _parts(data), deadline)

    def send_parts(self, size: int, parts: Iterable[memoryview], deadline: Deadline) -> None:
        """Send a message that is produced while it is sent.

        Parameters
        ----------
        size
            Length of the whole message, in bytes.
        parts
            Parts of the lengths that `slices.cut` returns. A part is not used any more when the next one is requested.
            An error in producing a part closes the channel, because the peer waits for the rest.
        deadline
            Deadline for the whole message.

        Raises
        ------
        ValueError
            The message is longer than `MAX_BYTES`, or the parts have other lengths.
        TransportError
            The message, or an earlier one, did not get through.
        """
        if size > MAX_BYTES:
            raise ValueError(f"a message has {size} bytes, at most {MAX_BYTES} are allowed")
        self._check()
        try:
            for part, length in zip(parts, slices.cut(size), strict=True):
                if len(part) != length:
                    raise ValueError(f"a part has {len(part)} bytes, expected {length}")
                self._sender.send(slices.encode(self._sent, size, part, sealed=self._sealed), part, deadline)
                self._sent += 1
        except TransportError as error:
            self._failed = error
            raise
        except BaseException as error:
            self._failed = PeerBrokenError(f"a message to {self.peer} was not completely sent: {error}")
            self.close()
            raise

    def receive(
        self, deadline: Deadline, into: Callable[[int], memoryview] | None = None, most: int = MAX_BYTES
    ) -> memoryview:
        """Wait for a message.

        Parameters
        ----------
        deadline
            Deadline for the whole message.
        into
            Returns memory for a message of the given size. By default, new memory is allocated.
        most
            Largest length of the message in bytes. A longer message breaks the connection.

        Raises
        ------
        TransportError
            No message was received, or an earlier one failed. If no part of it had arrived by the deadline, the channel
            remains usable.
        """
        received = _WholeMessage(into or _memory)
        self.receive_parts(deadline, received.begin, most)
        return received.message

    def receive_parts(self, deadline: Deadline, begin: Callable[[int], ReceiveBuffer], most: int = MAX_BYTES) -> None:
        """Wait for a message, and pass it on while it arrives.

        Parameters
        ----------
        deadline
            Deadline for the whole message.
        begin
            Takes the size of the message in bytes, and returns the buffer that receives its slices.
        most
            As in `receive`.

        Raises
        ------
        TransportError
            As in `receive`.
        """
        self._check()
        first = self._receiver.header(deadline)
        try:
            self._rest(self._decoded(first), deadline, begin, most)
        except TransportError as error:
            self._failed = error
            raise
        except BaseException as error:
            self._failed = PeerBrokenError(f"a message from {self.peer} was not completely received: {error}")
            self.close()
            raise

    @property
    def usable(self) -> bool:
        """Whether messages may still be sent and received: not after an incomplete message."""
        return self._failed is None and not self._closed

    def close(self) -> None:
        """End the connection. May be called several times, and by any thread."""
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
            raise PeerBrokenError(f"a message has {first.message_bytes} bytes, at most {most} are allowed")
        receive_buffer = begin(first.message_bytes)
        found = first
        for index, length in enumerate(slices.cut(first.message_bytes)):
            if index > 0:
                found = self._decoded(self._receiver.header(deadline))
            if (found.message_bytes, found.data_bytes) != (first.message_bytes, length):
                raise PeerBrokenError(f"slice {found.number} belongs to another message")
            part = receive_buffer.part(length, deadline)
            self._receiver.data(part, deadline)
            found.check(part)
            self._received += 1
            receive_buffer.received(length)


class Listener(ABC):
    """An address that peers connect to."""

    @property
    @abstractmethod
    def address(self) -> str:
        """Address that a peer needs to connect."""

    @abstractmethod
    def accept(self, deadline: Deadline) -> Channel:
        """Wait for a peer that completes the handshake; others are rejected.

        Raises
        ------
        PeerTimeoutError
            No such peer connected before the deadline.
        """

    @abstractmethod
    def close(self) -> None:
        """Stop accepting peers; existing channels stay open."""


class Transport(ABC):
    """A technique to reach peers. Its class says what others must know of it."""

    name: ClassVar[str]
    number: ClassVar[int]
    """Number in the answers of a transfer sidecar, from 1 to 15: `docs/PROTOCOL.md`, section 12."""
    encrypts: ClassVar[bool] = False
    """Whether the transport can encrypt."""
    within_host: ClassVar[bool] = False
    """Whether every peer is a process of the same user on this host, which the transport checks. Such peers may name
    memory of this host."""
    admits_strangers: ClassVar[str] = ""
    """Why processes that do not know the secret can send to this one; empty if they cannot."""
    only_by_name: ClassVar[str] = ""
    """Why the transport is not used unless it is set by name; empty if it is."""
    needs_device: ClassVar[bool] = False
    """Whether the transport needs a device that most hosts do not have. Tests on such hosts leave it out."""

    @classmethod
    @abstractmethod
    def make(cls, secret: bytes, host: str, *, encrypted: bool) -> Transport:
        """Create the transport of a process.

        Parameters
        ----------
        secret
            Secret of the application.
        host
            Name or address of this host that peers use.
        encrypted
            Whether data are encrypted. Transports that cannot encrypt ignore it.

        Raises
        ------
        TransportError
            The transport is not available in this process.
        """

    @abstractmethod
    def listen(self) -> Listener:
        """Create a listener."""

    @abstractmethod
    def connect(self, address: str, deadline: Deadline) -> Channel:
        """Connect to a peer.

        Raises
        ------
        TransportError
            The peer does not exist, does not respond, or belongs to another application.
        """


class _WholeMessage:
    """Receives a message into one piece of memory."""

    message: memoryview

    def __init__(self, memory: Callable[[int], memoryview]) -> None:
        self._memory = memory
        self._at = 0

    def begin(self, size: int) -> ReceiveBuffer:
        self.message = self._memory(size)
        return self

    def part(self, length: int, _: Deadline) -> memoryview:
        return self.message[self._at : self._at + length]

    def received(self, length: int) -> None:
        self._at += length


def _memory(size: int) -> memoryview:
    return memoryview(bytearray(size))


def _parts(data: memoryview) -> Iterable[memoryview]:
    at = 0
    for length in slices.cut(len(data)):
        yield data[at : at + length]
        at += length
