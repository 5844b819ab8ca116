"""Transport between processes on one host: data go through shared memory, and Unix sockets announce slices.

Neither has a name in the file system, so that nothing remains in whatever way processes end. The memory
(`memfd_create`) is passed over the socket, and is freed with the last process that has it open. The socket's name is
abstract, and visible only in one network namespace.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import socket
import struct
from dataclasses import dataclass, field
from functools import partial

from penstock.transport import slices, sockets
from penstock.transport.channel import Channel, Listener, Transport
from penstock.transport.deadline import Deadline
from penstock.transport.errors import PeerBrokenError, PeerLostError, PeerRefusedError
from penstock.transport.listening import SocketListener

SLOTS = 16
"""Largest number of slices on their way in each direction."""
RING_BYTES = SLOTS * slices.SLICE_BYTES
CREDIT = struct.Struct("<Q")
"""Message of a receiver: the number of slices that it has taken."""
_RINGS = b"R"
_CREDENTIALS = struct.Struct("3i")
"""Process, user and group, as reported by the kernel."""
# If a peer could truncate the memory, the next access would kill this process.
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


@dataclass(frozen=True)
class Local(Transport):
    """Shared memory between processes of one user on one host.

    Parameters
    ----------
    secret
        Secret of the application.
    """

    secret: bytes = field(repr=False)
    name = "local"
    number = 1
    within_host = True

    @classmethod
    def make(cls, secret: bytes, host: str, *, encrypted: bool) -> Local:
        """See `Transport`."""
        return cls(secret)

    def listen(self) -> Listener:
        """See `Transport`."""
        address = f"@penstock-{os.getpid()}-{os.urandom(8).hex()}"
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        server.bind(_abstract(address))
        server.listen(64)
        return SocketListener(server, address, partial(self._channel, connects=False))

    def connect(self, address: str, deadline: Deadline) -> Channel:
        """See `Transport`; `address` is the abstract name of a socket, after an ``@``."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(deadline.left_s("a connection"))
            connection.connect(_abstract(address))
        except OSError as error:
            connection.close()
            raise PeerLostError(f"cannot connect to {address}: {error}") from None
        return self._channel(connection, deadline, connects=True)

    def _channel(self, connection: socket.socket, deadline: Deadline, *, connects: bool) -> Channel:
        with sockets.closed_on_error(connection):
            _check_user(connection)
            shake = sockets.shake_connecting if connects else sockets.shake_accepting
            shake(connection, self.secret, deadline, encrypted=False)
            directions = (
                _make_directions(connection, deadline) if connects else _receive_directions(connection, deadline)
            )
        # All further data go over the directions' own sockets. This connection only has to stay open.
        out, back = directions if connects else reversed(directions)
        connections = (connection, *(direction.doorbell for direction in directions))
        return Channel(
            "the same host",
            _Sender(out),
            _Receiver(back),
            partial(sockets.end, *connections),
            partial(sockets.close, *connections),
        )


def _abstract(address: str) -> bytes:
    return b"\0" + address.removeprefix("@").encode()


def _check_user(connection: socket.socket) -> None:
    """Refuse other users, because no folder permissions protect an abstract socket."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(credentials)
    if user != os.getuid():
        raise PeerRefusedError(f"the peer runs as user {user}, this process as {os.getuid()}")


class _Direction:
    """One direction: a ring of slots, and a socket that announces slices and returns credit."""

    def __init__(self, doorbell: socket.socket, ring: mmap.mmap) -> None:
        self.doorbell = doorbell
        # The ring is unmapped when its last view is freed.
        self.slots = memoryview(ring)

    def slot(self, number: int, size: int) -> memoryview:
        at = number % SLOTS * slices.SLICE_BYTES
        return self.slots[at : at + size]


def _make_directions(connection: socket.socket, deadline: Deadline) -> list[_Direction]:
    """Create both directions, and pass the peer its ends of the two rings and two sockets."""
    rings = [os.memfd_create("penstock", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING) for _ in range(2)]
    pairs = [socket.socketpair() for _ in range(2)]
    try:
        for ring in rings:
            os.ftruncate(ring, RING_BYTES)
            fcntl.fcntl(ring, fcntl.F_ADD_SEALS, _SEALS)
        theirs = [*rings, *(pair[1].fileno() for pair in pairs)]
        connection.settimeout(deadline.left_s("the peer to take part in the handshake"))
        socket.send_fds(connection, [_RINGS], theirs)
        return [_Direction(pair[0], mmap.mmap(ring, RING_BYTES)) for pair, ring in zip(pairs, rings, strict=True)]
    finally:
        for ring in rings:
            os.close(ring)
        for pair in pairs:
            pair[1].close()


def _receive_directions(connection: socket.socket, deadline: Deadline) -> list[_Direction]:
    """Receive the directions that the peer has created."""
    connection.settimeout(deadline.left_s("the handshake"))
    received, files, _, _ = socket.recv_fds(connection, 1, 4)
    try:
        if received != _RINGS or len(files) != 4:  # noqa: PLR2004
            raise PeerBrokenError("the peer did not pass its memory and sockets")
        rings, doorbells = files[:2], files[2:]
        if not all(map(_is_ring, rings)):
            raise PeerBrokenError(f"the peer's memory does not have a fixed size of {RING_BYTES} bytes")
        directions = [
            _Direction(socket.socket(fileno=b), mmap.mmap(r, RING_BYTES)) for r, b in zip(rings, doorbells, strict=True)
        ]
        files = rings
        return directions
    finally:
        for file in files:
            os.close(file)


def _is_ring(file: int) -> bool:
    try:
        return os.fstat(file).st_size == RING_BYTES and fcntl.fcntl(file, fcntl.F_GET_SEALS) & _SEALS == _SEALS
    except OSError:
        return False


class _Sender:
    def __init__(self, direction: _Direction) -> None:
        self._direction = direction
        self._sent = 0
        self._taken = 0
        self._credits = sockets.Collecting(direction.doorbell, CREDIT.size)

    def send(self, header: bytes, data: memoryview, deadline: Deadline) -> None:
        while self._sent - self._taken >= SLOTS:
            self._take_credit(deadline)
        self._direction.slot(self._sent, len(data))[:] = data
        self._sent += 1
        sockets.write(self._direction.doorbell, [memoryview(header)], deadline, "the peer to read")

    def _take_credit(self, deadline: Deadline) -> None:
        (taken,) = CREDIT.unpack(self._credits.next(deadline, "the peer to read"))
        if not self._taken < taken <= self._sent:
            raise PeerBrokenError(f"the peer reports {taken} slices as taken, but {self._sent} were sent")
        self._taken = taken


class _Receiver:
    def __init__(self, direction: _Direction) -> None:
        self._direction = direction
        self._taken = 0
        self._headers = sockets.Collecting(direction.doorbell, slices.HEADER.size)

    def header(self, deadline: Deadline) -> bytes:
        return self._headers.next(deadline, "a message")

    def data(self, into: memoryview, deadline: Deadline) -> None:
        into[:] = self._direction.slot(self._taken, len(into))
        self._taken += 1
        # Credit is returned only for every few slices, because it costs a system call on both sides.
        if self._taken % (SLOTS // 4) == 0:
            sockets.write(
                self._direction.doorbell, [memoryview(CREDIT.pack(self._taken))], deadline, "the peer to read"
            )
