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
"""After 30 s of silence the peer's host is asked, three times in 30 s at most."""
HELLO_S = 1.0
"""In which a peer that has connected says so: its own first word needs no other."""


def bind(host: str) -> tuple[socket.socket, str]:
    """Listen for TCP on a port that the system chooses; gives the socket and its address, ``host:port``."""
    server = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=64)
    host, port = server.getsockname()[:2]
    return server, f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def dial(address: str, deadline: Deadline) -> socket.socket:
    """Connect to ``host:port``.

    Raises
    ------
    PeerLostError, PeerTimeoutError
        Nobody is there, or nothing answers.
    """
    host, _, port = address.rpartition(":")
    try:
        return socket.create_connection((host.strip("[]"), int(port)), deadline.left_s("a connection"))
    except TimeoutError:
        deadline.left_s(f"a connection to {address}")
        raise PeerLostError(f"{address} does not answer") from None
    except (OSError, ValueError, OverflowError) as error:
        raise PeerLostError(f"nobody is at {address}: {error}") from None


def prepare(connection: socket.socket) -> str:
    """Let small messages go at once over TCP, and find out when a host has vanished; gives the peer's address."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # A host that loses its power says nothing, and nobody may ask anything on this connection for hours.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEP_ALIVE:
        connection.setsockopt(socket.IPPROTO_TCP, option, value)
    host, port = connection.getpeername()[:2]
    return f"{host}:{port}"


@contextlib.contextmanager
def closed_on_error(connection: socket.socket) -> Iterator[None]:
    """Close a connection that becomes no channel.

    Raises
    ------
    TransportError
        Also for errors of the system.
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
        Some of them could not be written.
    """
    parts = [part for part in parts if len(part)]
    while parts:
        connection.settimeout(deadline.left_s(what))
        with _told(what):
            written = connection.sendmsg(parts)
        while parts and written >= len(parts[0]):
            written -= len(parts[0])
            parts = parts[1:]
        if written:
            parts = [parts[0][written:], *parts[1:]]


def read(connection: socket.socket, into: memoryview, deadline: Deadline, what: str) -> None:
    """Read as many bytes as there is memory for.

    Raises
    ------
    PeerTimeoutError, PeerLostError
        They did not come.
    """
    at = 0
    while at < len(into):
        at += read_some(connection, into[at:], deadline, what)


def read_some(connection: socket.socket, into: memoryview, deadline: Deadline, what: str) -> int:
    """Read some bytes, at least one.

    Raises
    ------
    PeerTimeoutError, PeerLostError
        None came.
    """
    connection.settimeout(deadline.left_s(what))
    with _told(what):
        count = connection.recv_into(into)
    if count == 0:
        raise PeerLostError(f"the peer closed the connection, and {what} was due")
    return count


def is_gone(connection: socket.socket) -> bool:
    """Whether the peer has closed the connection. Waits for nothing, and takes nothing."""
    # A socket with a time limit waits for it, whatever the flags say.
    looked = select.poll()
    try:
        looked.register(connection, select.POLLIN)
        return bool(looked.poll(0)) and connection.recv(1, socket.MSG_PEEK) == b""
    except (OSError, ValueError):
        return True


class Collecting:
    """Things of one size that come on a connection.

    What has come of one by the deadline is kept: who asks again gets it whole.
    """

    def __init__(self, connection: socket.socket, size: int) -> None:
        self._connection = connection
        self._memory = memoryview(bytearray(size))
        self._have = 0

    def next(self, deadline: Deadline, what: str) -> bytes:
        """Wait for the next one.

        Raises
        ------
        PeerTimeoutError, PeerLostError
            It did not come.
        """
        while self._have < len(self._memory):
            self._have += read_some(self._connection, self._memory[self._have :], deadline, what)
        self._have = 0
        return bytes(self._memory)


def shake_connecting(connection: socket.socket, secret: bytes, deadline: Deadline, *, encrypted: bool) -> Agreed:
    """Do the part of the side that connects.

    Raises
    ------
    TransportError
        The peer is none to talk to.
    """
    side = Connecting(secret, encrypted=encrypted)
    _say(connection, side.hello, deadline)
    _say(connection, side.proof(_hear(connection, ANSWER_BYTES, deadline)), deadline)
    return side.agree(_hear(connection, PROOF_BYTES, deadline))


def shake_accepting(connection: socket.socket, secret: bytes, deadline: Deadline, *, encrypted: bool) -> Agreed:
    """Do the part of the side that is connected to.

    Raises
    ------
    TransportError
        The peer is none to talk to.
    """
    side = Accepting(secret, encrypted=encrypted)
    hello = _hear(connection, HELLO_BYTES, deadline.or_after(HELLO_S))
    _say(connection, side.answer(hello), deadline)
    ready, agreed = side.ready(_hear(connection, PROOF_BYTES, deadline))
    _say(connection, ready, deadline)
    return agreed


def end(*connections: socket.socket) -> None:
    """Wake threads that wait for the peer, here and there; descriptors stay."""
    for connection in connections:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


def close(*connections: socket.socket) -> None:
    """End connections that no thread waits on, and free their descriptors."""
    end(*connections)
    for connection in connections:
        connection.close()


def _say(connection: socket.socket, data: bytes, deadline: Deadline) -> None:
    write(connection, [memoryview(data)], deadline, "the peer to take part in the handshake")


def _hear(connection: socket.socket, count: int, deadline: Deadline) -> bytes:
    data = bytearray(count)
    read(connection, memoryview(data), deadline, "the handshake")
    return bytes(data)


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        raise PeerTimeoutError(f"waited for {what}, and the time is over") from None
    except OSError as error:
        raise PeerLostError(f"the connection broke, and {what} was due: {error}") from None
