"""Plain TCP: works everywhere, and encrypts if required."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from functools import partial

from penstock.transport import sealing, slices, sockets
from penstock.transport.channel import Channel, Listener, Transport
from penstock.transport.deadline import Deadline
from penstock.transport.handshake import Agreed
from penstock.transport.listening import SocketListener

BUFFER_BYTES = 4 << 20
"""Size of the kernel's buffer in each direction."""


@dataclass(frozen=True)
class Tcp(Transport):
    """TCP between hosts.

    Parameters
    ----------
    secret
        Secret of the application.
    host
        Name or address that listeners are bound to, and that peers use.
    encrypted
        Whether data are encrypted. Must be equal on both sides.
    """

    secret: bytes = field(repr=False)
    host: str = "127.0.0.1"
    encrypted: bool = False
    name = "tcp"
    number = 4
    encrypts = True

    @classmethod
    def make(cls, secret: bytes, host: str, *, encrypted: bool) -> Tcp:
        """See `Transport`."""
        return cls(secret, host, encrypted)

    def listen(self) -> Listener:
        """See `Transport`; on a port that the system chooses."""
        server, address = sockets.bind(self.host)
        return SocketListener(server, address, partial(self._channel, connects=False))

    def connect(self, address: str, deadline: Deadline) -> Channel:
        """See `Transport`; `address` is ``host:port``."""
        return self._channel(sockets.dial(address, deadline), deadline, connects=True)

    def _channel(self, connection: socket.socket, deadline: Deadline, *, connects: bool) -> Channel:
        with sockets.closed_on_error(connection):
            peer = sockets.prepare(connection)
            for buffer in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                connection.setsockopt(socket.SOL_SOCKET, buffer, BUFFER_BYTES)
            shake = sockets.shake_connecting if connects else sockets.shake_accepting
            agreed = shake(connection, self.secret, deadline, encrypted=self.encrypted)
            out, back = self._seals(agreed, connects=connects)
            # Timeouts belong to a socket object, so each direction has its own.
            reading = connection.dup()
        return Channel(
            peer,
            _Sender(connection, out),
            _Receiver(reading, back),
            partial(sockets.end, connection),
            partial(sockets.close, connection, reading),
            sealed=agreed.encrypted,
        )

    def _seals(self, agreed: Agreed, *, connects: bool) -> tuple[sealing.Seal | None, sealing.Seal | None]:
        if not agreed.encrypted:
            return None, None
        directions = (sealing.CONNECTING, sealing.ACCEPTING)
        out, back = directions if connects else reversed(directions)
        return sealing.Seal(self.secret, agreed, out), sealing.Seal(self.secret, agreed, back)


class _Sender:
    def __init__(self, connection: socket.socket, seal: sealing.Seal | None) -> None:
        self._connection = connection
        self._seal = seal
        self._number = 0

    def send(self, header: bytes, data: memoryview, deadline: Deadline) -> None:
        if self._seal is not None:
            data = memoryview(self._seal.close(self._number, header, data))
        sockets.write(self._connection, [memoryview(header), data], deadline, "the peer to read")
        self._number += 1


class _Receiver:
    def __init__(self, connection: socket.socket, seal: sealing.Seal | None) -> None:
        self._connection = connection
        self._seal = seal
        self._number = 0
        self._headers = sockets.Collecting(connection, slices.HEADER.size)
        self._header = b""
        self._sealed = memoryview(bytearray(slices.SLICE_BYTES + sealing.SEAL_BYTES if seal else 0))

    def header(self, deadline: Deadline) -> bytes:
        self._header = self._headers.next(deadline, "a message")
        return self._header

    def data(self, into: memoryview, deadline: Deadline) -> None:
        if self._seal is None:
            sockets.read(self._connection, into, deadline, "the rest of a message")
        else:
            sealed = self._sealed[: len(into) + sealing.SEAL_BYTES]
            sockets.read(self._connection, sealed, deadline, "the rest of a message")
            into[:] = self._seal.open(self._number, self._header, sealed)
        self._number += 1
