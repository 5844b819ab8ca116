"""Peers of one host: data go through shared memory, and a Unix socket says what is there.

Neither has a name in any folder, so that nothing is left behind however processes end: the memory (`memfd_create`) is
handed over on the socket, and is gone with the last process that has it; the socket's name is abstract, and known to
processes of one network namespace.
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
"""Slices that may be on their way."""
RING_BYTES = SLOTS * slices.SLICE_BYTES
CREDIT = struct.Struct("<Q")
"""What a receiver says: how many slices it has taken."""
_RINGS = b"R"
_CREDENTIALS = struct.Struct("3i")
"""Process, user and group, as the kernel tells them."""
# A peer that made it smaller would end this process at its next touch.
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


@dataclass(frozen=True)
class Local(Transport):
    """Shared memory between processes of one user on one host.

    Parameters
    ----------
    secret
        Of the application.
    """

    secret: bytes = field(repr=False)
    name = "local"
    encrypts = False

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
            raise PeerLostError(f"nobody is at {address}: {error}") from None
        return self._channel(connection, deadline, connects=True)

    def _channel(self, connection: socket.socket, deadline: Deadline, *, connects: bool) -> Channel:
        with sockets.closed_on_error(connection):
            _check_user(connection)
            shake = sockets.shake_connecting if connects else sockets.shake_accepting
            shake(connection, self.secret, deadline, encrypted=False)
            ways = _make_ways(connection, deadline) if connects else _take_ways(connection, deadline)
        # All that follows goes over the ways; this one tells that the peer lives, to nobody.
        out, back = ways if connects else reversed(ways)
        all_of_it = (connection, *(way.doorbell for way in ways))
        return Channel(
            "the same host",
            _Sender(out),
            _Receiver(back),
            partial(sockets.end, *all_of_it),
            partial(sockets.close, *all_of_it),
        )


def _abstract(address: str) -> bytes:
    return b"\0" + address.removeprefix("@").encode()


def _check_user(connection: socket.socket) -> None:
    """Refuse other users: no folder keeps them away."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(credentials)
    if user != os.getuid():
        raise PeerRefusedError(f"the peer is of user {user}, this process of {os.getuid()}")


class _Way:
    """One direction: a ring of slots, and a socket on which slices are announced, and credit comes back."""

    def __init__(self, doorbell: socket.socket, ring: mmap.mmap) -> None:
        self.doorbell = doorbell
        # Unmapped with the last view of it.
        self.slots = memoryview(ring)

    def slot(self, number: int, size: int) -> memoryview:
        at = number % SLOTS * slices.SLICE_BYTES
        return self.slots[at : at + size]


def _make_ways(connection: socket.socket, deadline: Deadline) -> list[_Way]:
    """Make the ways out and back, and hand the peer its ends: of two rings, and of two sockets."""
    rings = [os.memfd_create("penstock", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING) for _ in range(2)]
    pairs = [socket.socketpair() for _ in range(2)]
    try:
        for ring in rings:
            os.ftruncate(ring, RING_BYTES)
            fcntl.fcntl(ring, fcntl.F_ADD_SEALS, _SEALS)
        theirs = [*rings, *(pair[1].fileno() for pair in pairs)]
        connection.settimeout(deadline.left_s("the peer to take part in the handshake"))
        socket.send_fds(connection, [_RINGS], theirs)
        return [_Way(pair[0], mmap.mmap(ring, RING_BYTES)) for pair, ring in zip(pairs, rings, strict=True)]
    finally:
        for ring in rings:
            os.close(ring)
        for pair in pairs:
            pair[1].close()


def _take_ways(connection: socket.socket, deadline: Deadline) -> list[_Way]:
    """Take the ends that the peer has made."""
    connection.settimeout(deadline.left_s("the handshake"))
    said, files, _, _ = socket.recv_fds(connection, 1, 4)
    try:
        if said != _RINGS or len(files) != 4:  # noqa: PLR2004
            raise PeerBrokenError("the peer did not hand over its memory")
        rings, doorbells = files[:2], files[2:]
        if not all(map(_is_ring, rings)):
            raise PeerBrokenError(f"the peer's memory is not of {RING_BYTES} bytes for ever")
        ways = [_Way(socket.socket(fileno=b), mmap.mmap(r, RING_BYTES)) for r, b in zip(rings, doorbells, strict=True)]
        files = rings
        return ways
    finally:
        for file in files:
            os.close(file)


def _is_ring(file: int) -> bool:
    try:
        return os.fstat(file).st_size == RING_BYTES and fcntl.fcntl(file, fcntl.F_GET_SEALS) & _SEALS == _SEALS
    except OSError:
        return False


class _Sender:
    def __init__(self, way: _Way) -> None:
        self._way = way
        self._sent = 0
        self._taken = 0
        self._credits = sockets.Collecting(way.doorbell, CREDIT.size)

    def send(self, header: bytes, data: memoryview, deadline: Deadline) -> None:
        while self._sent - self._taken >= SLOTS:
            self._take_credit(deadline)
        self._way.slot(self._sent, len(data))[:] = data
        self._sent += 1
        sockets.write(self._way.doorbell, [memoryview(header)], deadline, "the peer to read")

    def _take_credit(self, deadline: Deadline) -> None:
        (taken,) = CREDIT.unpack(self._credits.next(deadline, "the peer to read"))
        if not self._taken < taken <= self._sent:
            raise PeerBrokenError(f"the peer says that it has taken {taken} slices of {self._sent}")
        self._taken = taken


class _Receiver:
    def __init__(self, way: _Way) -> None:
        self._way = way
        self._taken = 0
        self._headers = sockets.Collecting(way.doorbell, slices.HEADER.size)

    def header(self, deadline: Deadline) -> bytes:
        return self._headers.next(deadline, "a message")

    def data(self, into: memoryview, deadline: Deadline) -> None:
        into[:] = self._way.slot(self._taken, len(into))
        self._taken += 1
        # Every few: each costs a call of the kernel on both sides.
        if self._taken % (SLOTS // 4) == 0:
            sockets.write(self._way.doorbell, [memoryview(CREDIT.pack(self._taken))], deadline, "the peer to read")
