"""Listeners on stream sockets. Handshakes run concurrently, so that a stalled peer does not delay others."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from collections.abc import Callable

from penstock.transport import sockets
from penstock.transport.channel import Channel, Listener
from penstock.transport.deadline import Deadline
from penstock.transport.errors import PeerLostError, PeerTimeoutError, TransportError

HANDSHAKE_S = 5.0
"""Time limit for a peer's handshake, in seconds. After it the peer is rejected."""
MAX_AT_ONCE = 64
"""Largest number of handshakes, and of channels waiting to be accepted. The oldest handshake gives way to a new one."""
MAX_OF_ONE_HOST = 32
"""Largest number of handshakes with one host, so that a host that floods this one leaves room for others."""
PAUSE_S = 0.05
"""Pause after a connection could not be accepted, for example for lack of descriptors or threads."""

MakeChannel = Callable[[socket.socket, Deadline], Channel]


class SocketListener(Listener):
    """Accepts connections of a listening socket.

    Parameters
    ----------
    server
        Listening socket, which the listener closes at its end.
    address
        Address for peers.
    make
        Makes a channel from a connection, or closes the connection and raises a `TransportError`.
    """

    def __init__(self, server: socket.socket, address: str, make: MakeChannel) -> None:
        self._server = server
        self._address = address
        self._make = make
        self._ready: queue.SimpleQueue[Channel | None] = queue.SimpleQueue()
        self._unproven = _Unproven()
        self._closed = False
        server.settimeout(None)
        threading.Thread(target=self._listen, name=f"penstock listens at {address}", daemon=True).start()

    @property
    def address(self) -> str:
        """See `Listener`."""
        return self._address

    def accept(self, deadline: Deadline) -> Channel:
        """See `Listener`."""
        try:
            channel = None if self._closed else self._ready.get(timeout=deadline.left_s("a peer"))
        except queue.Empty:
            raise PeerTimeoutError("timed out waiting for a peer") from None
        if channel is None:
            raise PeerLostError(f"the listener at {self._address} is closed")
        return channel

    def close(self) -> None:
        """See `Listener`."""
        if self._closed:
            return
        self._closed = True
        sockets.end(self._server)
        self._ready.put(None)
        with contextlib.suppress(queue.Empty):
            while True:
                if (channel := self._ready.get_nowait()) is not None:
                    channel.close()
        self._ready.put(None)

    def _listen(self) -> None:
        # Only this thread closes the descriptor, so that its number cannot be reused while accept() waits on it.
        with self._server:
            while not self._closed:
                try:
                    connection, peer = self._server.accept()
                except OSError:
                    time.sleep(0 if self._closed else PAUSE_S)
                    continue
                self._unproven.add(connection, _host(peer))
                try:
                    threading.Thread(target=self._greet, args=(connection,), daemon=True).start()
                except RuntimeError:
                    # No thread can be started. The peer uses another transport; later peers may be accepted again.
                    self._unproven.remove(connection)
                    connection.close()
                    time.sleep(PAUSE_S)

    def _greet(self, connection: socket.socket) -> None:
        try:
            channel = self._make(connection, Deadline.after(HANDSHAKE_S))
        except (TransportError, OSError):
            return
        finally:
            self._unproven.remove(connection)
        # Channels are no longer accepted, or more slowly than peers connect.
        if self._closed or self._ready.qsize() >= MAX_AT_ONCE:
            channel.close()
        else:
            self._ready.put(channel)


class _Unproven:
    """Connections whose handshake is not complete, the oldest first."""

    def __init__(self) -> None:
        self._hosts: dict[socket.socket, str] = {}
        self._lock = threading.Lock()

    def add(self, connection: socket.socket, host: str) -> None:
        """Add a connection. If there are too many, the oldest of its host, or of all, is ended."""
        with self._lock:
            same = [c for c, other in self._hosts.items() if other == host]
            if host and len(same) >= MAX_OF_ONE_HOST:
                self._end(same[0])
            elif len(self._hosts) >= MAX_AT_ONCE:
                self._end(next(iter(self._hosts)))
            self._hosts[connection] = host

    def remove(self, connection: socket.socket) -> None:
        """Remove a connection whose handshake has succeeded or failed."""
        with self._lock:
            self._hosts.pop(connection, None)

    def _end(self, connection: socket.socket) -> None:
        # The thread of its handshake closes it.
        del self._hosts[connection]
        sockets.end(connection)


def _host(peer: object) -> str:
    """Return the host of a socket address; empty for a Unix socket."""
    return str(peer[0]) if isinstance(peer, tuple) else ""
