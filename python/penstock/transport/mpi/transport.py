"""MPI: headers of slices go over a TCP connection, which also shows whether the peer lives; data go over MPI.

A blocking MPI call uses a whole core, and waits for ever for a dead peer. Therefore no call blocks. Slices are
announced on the TCP connection, operations are started and then tested, and an operation that does not end is abandoned
together with its memory.
"""

from __future__ import annotations

import hmac
import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from penstock.transport import slices, sockets
from penstock.transport.channel import Channel, Listener, Transport
from penstock.transport.deadline import Deadline
from penstock.transport.errors import PeerLostError, PeerRefusedError, PeerTimeoutError, TransportError
from penstock.transport.handshake import PROOF_BYTES, Agreed
from penstock.transport.listening import SocketListener
from penstock.transport.mpi.library import mpi
from penstock.transport.mpi.meeting import Meetings, StuckError, connect

_SPIN_S = 200e-6
_PAUSE_S = 50e-6
_LOOK_S = 0.005
"""Time between two checks whether the peer lives, in seconds."""
_LAST_S = 0.1
"""Time for receiving what the peer had sent before it died, in seconds."""
_CONNECTING, _ACCEPTING = b"connecting", b"accepting"
"""Role of the side that proves itself."""
_abandoned: list[tuple[Any, memoryview]] = []
"""Operations that never end, and their memory, which the library may still access."""


def _end_process(_: StuckError) -> None:
    os._exit(1)


@dataclass(frozen=True)
class Mpi(Transport):
    """MPI between hosts.

    Parameters
    ----------
    secret
        Secret of the application.
    host
        Name or address that listeners are bound to, and that peers use.
    on_stuck
        Called if only a new process can continue. By default this process ends, so that it is restarted.

    Raises
    ------
    TransportError
        ``PENSTOCK_NO_MPI``: there is no suitable library.
    """

    secret: bytes = field(repr=False)
    host: str = "127.0.0.1"
    on_stuck: Callable[[StuckError], None] = field(default=_end_process, compare=False)
    name = "mpi"
    number = 3
    admits_strangers = "the port of an MPI library accepts packets from anybody"
    only_by_name = "over Ethernet it is not faster than tcp"

    def __post_init__(self) -> None:
        mpi()

    @classmethod
    def make(cls, secret: bytes, host: str, *, encrypted: bool) -> Mpi:
        """See `Transport`."""
        return cls(secret, host)

    def listen(self) -> Listener:
        """See `Transport`; on a port that the system chooses."""
        server, address = sockets.bind(self.host)
        return SocketListener(server, address, partial(self._channel, meet=self._accept(Meetings())))

    def connect(self, address: str, deadline: Deadline) -> Channel:
        """See `Transport`; `address` is ``host:port``."""
        return self._channel(sockets.dial(address, deadline), deadline, meet=self._connect)

    def _accept(self, meetings: Meetings) -> Callable[[socket.socket, Deadline], Any]:
        def meet(control: socket.socket, deadline: Deadline) -> Any:
            agreed = sockets.shake_accepting(control, self.secret, deadline, encrypted=False)
            check = partial(self._check, control=control, agreed=agreed, own_role=_ACCEPTING, peer_role=_CONNECTING)
            try:
                return meetings.accept(control, deadline, check)
            except StuckError as error:
                self.on_stuck(error)
                raise

        return meet

    def _connect(self, control: socket.socket, deadline: Deadline) -> Any:
        agreed = sockets.shake_connecting(control, self.secret, deadline, encrypted=False)
        communicator = connect(control, deadline)
        try:
            self._check(
                communicator, deadline, control=control, agreed=agreed, own_role=_CONNECTING, peer_role=_ACCEPTING
            )
        except TransportError:
            communicator.Free()
            raise
        return communicator

    def _check(
        self,
        communicator: Any,
        deadline: Deadline,
        *,
        control: socket.socket,
        agreed: Agreed,
        own_role: bytes,
        peer_role: bytes,
    ) -> None:
        """Prove over the communicator that it belongs to this connection, and check the peer's proof."""
        communicator.Set_errhandler(mpi().ERRORS_RETURN)
        line = _Line(communicator, control)
        line.run("Isend", memoryview(bytearray(self._proof(own_role, agreed))), deadline, "the peer to prove itself")
        proof = memoryview(bytearray(PROOF_BYTES))
        line.run("Irecv", proof, deadline, "the peer to prove itself")
        if not hmac.compare_digest(proof, self._proof(peer_role, agreed)):
            raise PeerRefusedError("another process has connected by MPI in place of the peer")

    def _proof(self, role: bytes, agreed: Agreed) -> bytes:
        return hmac.digest(self.secret, b"penstock mpi " + role + b" " + agreed.transcript, "sha256")

    def _channel(
        self, control: socket.socket, deadline: Deadline, *, meet: Callable[[socket.socket, Deadline], Any]
    ) -> Channel:
        with sockets.closed_on_error(control):
            peer = sockets.prepare(control)
            communicator = meet(control, deadline)
            reading = control.dup()
        line = _Line(communicator, control)

        def release() -> None:
            sockets.close(control, reading)
            line.free()

        return Channel(peer, _Sender(line, control), _Receiver(line, reading), partial(sockets.end, control), release)


class _Line:
    """A communicator with one peer, and the connection that shows whether the peer lives."""

    def __init__(self, communicator: Any, control: socket.socket) -> None:
        self.communicator = communicator
        self._control = control
        self._freeing = threading.Lock()

    def run(self, operation: str, memory: memoryview, deadline: Deadline, what: str) -> None:
        """Start an operation, ``Isend`` or ``Irecv``, and wait for its end without a blocking call."""
        library = mpi()
        try:
            request = getattr(self.communicator, operation)([memory, library.BYTE], 0, 0)
        except library.Exception as error:
            raise PeerLostError(f"MPI lost the peer while waiting for {what}: {error}") from None
        started_at = checked_at = time.monotonic()
        gone_at: float | None = None
        try:
            while not request.Test():
                now = time.monotonic()
                if now >= deadline.at_s:
                    raise PeerTimeoutError(f"timed out waiting for {what}")
                if gone_at is not None and now - gone_at > _LAST_S:
                    raise PeerLostError(f"the peer closed the connection while this process waited for {what}")
                if gone_at is None and now - checked_at > _LOOK_S:
                    checked_at = now
                    gone_at = now if sockets.is_gone(self._control) else None
                time.sleep(0 if now - started_at < _SPIN_S else _PAUSE_S)
        except library.Exception as error:
            raise PeerLostError(f"MPI lost the peer while waiting for {what}: {error}") from None
        except TransportError:
            _abandoned.append((request, memory))
            raise

    def free(self) -> None:
        """Free the communicator; the peer need not take part."""
        library = mpi()
        with self._freeing:
            try:
                if self.communicator != library.COMM_NULL:
                    self.communicator.Free()
            except library.Exception:
                return


class _Sender:
    def __init__(self, line: _Line, control: socket.socket) -> None:
        self._line = line
        self._control = control

    def send(self, header: bytes, data: memoryview, deadline: Deadline) -> None:
        sockets.write(self._control, [memoryview(header)], deadline, "the peer to read")
        if len(data):
            self._line.run("Isend", data, deadline, "the peer to read")


class _Receiver:
    def __init__(self, line: _Line, control: socket.socket) -> None:
        self._line = line
        self._headers = sockets.Collecting(control, slices.HEADER.size)

    def header(self, deadline: Deadline) -> bytes:
        return self._headers.next(deadline, "a message")

    def data(self, into: memoryview, deadline: Deadline) -> None:
        if len(into):
            self._line.run("Irecv", into, deadline, "the rest of a message")
