"""Connects two processes by an MPI communicator, and recovers if one of them dies meanwhile."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from penstock.transport import sockets
from penstock.transport.deadline import Deadline
from penstock.transport.errors import PeerBrokenError, PeerLostError, PeerTimeoutError, TransportError
from penstock.transport.mpi.library import CONNECT_S, mpi

_CONNECT_AND_END = (
    "import sys; sys.path[:] = [place for place in sys.path if place]; "
    "from penstock.transport.mpi.meeting import come_and_go; come_and_go(sys.argv[1])"
)
"""Program that connects and ends. It does not import from the working directory, which may be untrusted."""
_LENGTH = struct.Struct("<H")
_MAX_NAME_BYTES = 1024
_LOOK_S = 0.02
_UNBLOCK_S = 5.0
_CHECK_S = 1.0
"""Time for the peer's proof over the communicator, in seconds."""


class StuckError(TransportError):
    """A thread waits in the library for a dead peer and cannot be woken; only a new process can continue."""

    def __init__(self) -> None:
        super().__init__("PENSTOCK_MPI_STUCK", "MPI waits for a peer that has died; this process must be restarted")


class Meetings:
    """Accepts peers one at a time: an MPI port serves one peer, and waits for ever if it died while connecting."""

    def __init__(self) -> None:
        self._port = mpi().Open_port()
        self._turn = threading.Lock()

    def accept(self, control: socket.socket, deadline: Deadline, check: Callable[[Any, Deadline], None]) -> Any:
        """Send the peer the port, wait for it there, and return the communicator.

        Parameters
        ----------
        control
            Connection to the peer.
        deadline
            Deadline for the peer's arrival.
        check
            Checks that a communicator belongs to the peer, because the library accepts whoever connects to the port.
            Raises a `TransportError` if it does not, and then the next connection is checked.

        Raises
        ------
        StuckError
            This process cannot continue.
        TransportError
            The peer did not connect.
        """
        if not self._turn.acquire(timeout=deadline.left_s("other peers to connect")):
            raise PeerTimeoutError("timed out waiting for other peers to connect")
        try:
            name = self._port.encode()
            sockets.write(control, [memoryview(_LENGTH.pack(len(name)) + name)], deadline, "the peer to connect")
            while True:
                communicator = self._wait(_Accept(self._port), control, deadline)
                try:
                    check(communicator, deadline.or_after(_CHECK_S))
                except TransportError:
                    communicator.Free()
                else:
                    return communicator
        finally:
            self._turn.release()

    def _wait(self, accept: _Accept, control: socket.socket, deadline: Deadline) -> Any:
        failure: TransportError | None = None
        while failure is None and accept.is_alive():
            accept.join(_LOOK_S)
            if time.monotonic() >= deadline.at_s:
                failure = PeerTimeoutError("timed out waiting for the peer to connect by MPI")
            elif sockets.is_gone(control):
                failure = PeerLostError("the peer closed the connection before it connected by MPI")
        if failure is not None:
            # The peer may still be connecting.
            accept.join(1.0)
            if accept.is_alive():
                _unblock(self._port)
                accept.join(_UNBLOCK_S)
            if accept.is_alive():
                raise StuckError from failure
            if accept.found is not None:
                accept.found.Free()
            raise failure
        if accept.found is None:
            raise PeerLostError(f"MPI could not accept the peer: {accept.failed}")
        return accept.found


def connect(control: socket.socket, deadline: Deadline) -> Any:
    """Receive the peer's port, connect to it, and return the communicator.

    Raises
    ------
    TransportError
        The peer is gone.
    """
    length = memoryview(bytearray(_LENGTH.size))
    sockets.read(control, length, deadline, "the peer's port")
    (size,) = _LENGTH.unpack(length)
    if size > _MAX_NAME_BYTES:
        raise PeerBrokenError(f"the name of the peer's port has {size} bytes, at most {_MAX_NAME_BYTES} are allowed")
    name = memoryview(bytearray(size))
    sockets.read(control, name, deadline, "the peer's port")
    return _connect(bytes(name).decode(errors="replace"))


def _connect(port: str) -> Any:
    library = mpi()
    info = library.Info.Create()
    try:
        info.Set("timeout", str(CONNECT_S))
        return library.COMM_SELF.Connect(port, info)
    except library.Exception as error:
        raise PeerLostError(f"MPI could not connect to the peer: {error}") from None
    finally:
        info.Free()


class _Accept(threading.Thread):
    """Runs the library's blocking call that waits for a peer."""

    def __init__(self, port: str) -> None:
        super().__init__(name="penstock mpi accept", daemon=True)
        self._port = port
        self.found: Any = None
        self.failed: Exception | None = None
        self.start()

    def run(self) -> None:
        library = mpi()
        try:
            self.found = library.COMM_SELF.Accept(self._port)
        except library.Exception as error:
            self.failed = error


def _unblock(port: str) -> None:
    """Start a process that connects to the port and ends, which wakes the thread that waits there."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PMI_")}
    try:
        subprocess.run(
            [sys.executable, "-c", _CONNECT_AND_END, port],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=4 * _UNBLOCK_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return


def come_and_go(port: str) -> None:
    """Connect to a port, and end the process."""
    try:
        _connect(port)
    finally:
        # Exit without finalizing the library, which would wait for the other side.
        os._exit(0)
