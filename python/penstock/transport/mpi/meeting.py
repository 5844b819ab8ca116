"""How two processes become an MPI communicator, and what is done where the other one dies meanwhile."""

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

_COMES_AND_GOES = (
    "import sys; sys.path[:] = [place for place in sys.path if place]; "
    "from penstock.transport.mpi.meeting import come_and_go; come_and_go(sys.argv[1])"
)
"""Without the working directory, which may be anybody's."""
_LENGTH = struct.Struct("<H")
_MOST_NAME_BYTES = 1024
_LOOK_S = 0.02
_UNBLOCK_S = 5.0
_CHECK_S = 1.0
"""In which the peer proves itself once more."""


class StuckError(TransportError):
    """A thread waits within the library for a peer that is gone, and nothing wakes it: only a new process can go on."""

    def __init__(self) -> None:
        super().__init__("PENSTOCK_MPI_STUCK", "MPI waits for a peer that has died; the process must be started again")


class Meetings:
    """Takes peers one at a time: a port of MPI serves one, and waits in vain for one that died on its way."""

    def __init__(self) -> None:
        self._port = mpi().Open_port()
        self._turn = threading.Lock()

    def accept(self, control: socket.socket, deadline: Deadline, check: Callable[[Any, Deadline], None]) -> Any:
        """Tell the peer the port, and wait for it there; gives the communicator.

        Parameters
        ----------
        check
            Finds out whether a communicator is with the peer: the library takes whoever comes to the port. Raises a
            `TransportError` where it is not; the next one is looked at then.

        Raises
        ------
        StuckError
            See there.
        TransportError
            The peer did not come.
        """
        if not self._turn.acquire(timeout=deadline.left_s("other peers to connect")):
            raise PeerTimeoutError("waited for other peers to connect, and the time is over")
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
        gone: TransportError | None = None
        while gone is None and accept.is_alive():
            accept.join(_LOOK_S)
            if time.monotonic() >= deadline.at_s:
                gone = PeerTimeoutError("waited for the peer to connect by MPI, and the time is over")
            elif sockets.is_gone(control):
                gone = PeerLostError("the peer closed the connection before it connected by MPI")
        if gone is not None:
            # It may be under way all the same.
            accept.join(1.0)
            if accept.is_alive():
                _unblock(self._port)
                accept.join(_UNBLOCK_S)
            if accept.is_alive():
                raise StuckError from gone
            if accept.found is not None:
                accept.found.Free()
            raise gone
        if accept.found is None:
            raise PeerLostError(f"MPI could not take the peer: {accept.failed}")
        return accept.found


def connect(control: socket.socket, deadline: Deadline) -> Any:
    """Learn the peer's port, and connect to it; gives the communicator.

    Raises
    ------
    TransportError
        The peer is not there.
    """
    length = memoryview(bytearray(_LENGTH.size))
    sockets.read(control, length, deadline, "the peer's port")
    (size,) = _LENGTH.unpack(length)
    if size > _MOST_NAME_BYTES:
        raise PeerBrokenError(f"a port with a name of {size} bytes")
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
    """The library's own call does not end before a peer comes."""

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
    """Let a process of its own connect, and end."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PMI_")}
    try:
        subprocess.run(
            [sys.executable, "-c", _COMES_AND_GOES, port],
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
        # Without a word to the library, which would wait for the other side.
        os._exit(0)
