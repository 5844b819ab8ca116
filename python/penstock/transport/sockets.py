"""Stream sockets with deadlines, and the handshake on them."""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Iterator

from penstock.transport.deadline import Deadline
from penstock.transport.errors import PeerLostError, PeerTimeoutError, TransportError
from penstock.transport.handshake import ANSWER_BYTES, HELLO_BYTES, PROOF_BYTES, Accepting, Agreed, Connecting

KEEP_ALIVE = ((socket.TCP_KEEPIDLE, 30), (socket.TCP_KEEPINTVL, 10), (socket.TCP_KEEPCNT, 3))
"""After 30 s of silence the peer's host is probed, up to three times at intervals of 10 s."""
HELLO_S = 1.0
"""Time in which a connected peer must send its hello, in seconds. The hello does not depend on any reply."""


def bind(host: str) -> tuple[socket.socket, str]:
    """Listen for TCP on a port chosen by the system; return the socket and its address, ``host:port``."""
    server = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=64)
    host, port = server.getsockname()[:2]
    return server, f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def dial(address: str, deadline: Deadline) -> socket.socket:
    """Connect to ``host:port``.

    Raises
    ------
    PeerLostError, PeerTimeoutError
        The connection is refused, or there is no response.
    """
    host, _, port = address.rpartition(":")
    try:
        return socket.create_connection((host.strip("[]"), int(port)), deadline.left_s("a connection"))
    except TimeoutError:
        deadline.left_s(f"a connection to {address}")
        raise PeerLostError(f"{address} does not respond") from None
    except (OSError, ValueError, OverflowError) as error:
        raise PeerLostError(f"cannot connect to {address}: {error}") from None


def prepare(connection: socket.socket) -> str:
    """Disable delays of small messages, enable keep-alive probes, and return the peer's address."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # A host that loses power does not close its connections, and this connection may be idle for hours.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEP_ALIVE:
        connection.setsockopt(socket.IPPROTO_TCP, option, value)
    host, port = connection.getpeername()[:2]
    return f"{host}:{port}"


@contextlib.contextmanager
def closed_on_error(connection: socket.socket) -> Iterator[None]:
    """Close a connection if it does not become a channel.

    Raises
    ------
    TransportError
        An error occurred; errors of the operating system are converted.
    """
    try:
        yield
    except OSError as error:
        close(connection)
        raise PeerLostError(f"the connection broke: {error}") from None
    except TransportError:
        close(connection)
        raise


def write(connection: socket.socket, parts: list[memoryview], deadline: Deadline, what: str) -> None:
    """Write all bytes of all parts.

    Raises
    ------
    PeerTimeoutError, PeerLostError
        Not all bytes could be written.
    """
    parts = [part for part in parts if len(part)]
    while parts:
        connection.settimeout(deadline.left_s(what))
        with _as_transport_errors(what):
            written = connection.sendmsg(parts)
        while parts and written >= len(parts[0]):
            written -= len(parts[0])
            parts = parts[1:]
        if written:
            parts = [parts[0][written:], *parts[1:]]


def read(connection: socket.socket, into: memoryview, deadline: Deadline, what: str) -> None:
    """Read until `into` is full.

    Raises
    ------
    PeerTimeoutError, PeerLostError
        Not all bytes were received.
    """
    at = 0
    while at < len(into):
        at += read_some(connection, into[at:], deadline, what)


def read_some(connection: socket.socket, into: memoryview, deadline: Deadline, what: str) -> int:
    """Read at least one byte.

    Raises
    ------
    PeerTimeoutError, PeerLostError
        Nothing was received.
    """
    connection.settimeout(deadline.left_s(what))
    with _as_transport_errors(what):
        count = connection.recv_into(into)
    if count == 0:
        raise PeerLostError(f"the peer closed the connection while this process waited for {what}")
    return count


def is_gone(connection: socket.socket) -> bool:
    """Whether the peer has closed the connection. Neither waits nor consumes data."""
    # A socket with a timeout waits for data even with MSG_DONTWAIT, so poll first.
    poll = select.poll()
    try:
        poll.register(connection, select.POLLIN)
        return bool(poll.poll(0)) and connection.recv(1, socket.MSG_PEEK) == b""
    except (OSError, ValueError):
        return True


class Collecting:
    """Reads items of a fixed size from a connection.

    A partly received item is kept if the deadline passes, and completed by the next call.
    """

    def __init__(self, connection: socket.socket, size: int) -> None:
        self._connection = connection
        self._memory = memoryview(bytearray(size))
        self._have = 0

    def next(self, deadline: Deadline, what: str) -> bytes:
        """Wait for the next item.

        Raises
        ------
        PeerTimeoutError, PeerLostError
            The item was not received.
        """
        while self._have < len(self._memory):
            self._have += read_some(self._connection, self._memory[self._have :], deadline, what)
        self._have = 0
        return bytes(self._memory)


def shake_connecting(connection: socket.socket, secret: bytes, deadline: Deadline, *, encrypted: bool) -> Agreed:
    """Perform the handshake as the side that connects.

    Raises
    ------
    TransportError
        The handshake failed.
    """
    side = Connecting(secret, encrypted=encrypted)
    _send(connection, side.hello, deadline)
    _send(connection, side.proof(_receive(connection, ANSWER_BYTES, deadline)), deadline)
    return side.agree(_receive(connection, PROOF_BYTES, deadline))


def shake_accepting(connection: socket.socket, secret: bytes, deadline: Deadline, *, encrypted: bool) -> Agreed:
    """Perform the handshake as the side that is connected to.

    Raises
    ------
    TransportError
        The handshake failed.
    """
    side = Accepting(secret, encrypted=encrypted)
    hello = _receive(connection, HELLO_BYTES, deadline.or_after(HELLO_S))
    _send(connection, side.answer(hello), deadline)
    ready, agreed = side.ready(_receive(connection, PROOF_BYTES, deadline))
    _send(connection, ready, deadline)
    return agreed


def end(*connections: socket.socket) -> None:
    """Shut connections down, which wakes waiting threads on both sides; descriptors stay open."""
    for connection in connections:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


def close(*connections: socket.socket) -> None:
    """Shut down connections that no thread waits on, and close their descriptors."""
    end(*connections)
    for connection in connections:
        connection.close()


def _send(connection: socket.socket, data: bytes, deadline: Deadline) -> None:
    write(connection, [memoryview(data)], deadline, "the peer to take part in the handshake")


def _receive(connection: socket.socket, count: int, deadline: Deadline) -> bytes:
    data = bytearray(count)
    read(connection, memoryview(data), deadline, "the handshake")
    return bytes(data)


@contextlib.contextmanager
def _as_transport_errors(what: str) -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        raise PeerTimeoutError(f"timed out waiting for {what}") from None
    except OSError as error:
        raise PeerLostError(f"the connection broke while waiting for {what}: {error}") from None
