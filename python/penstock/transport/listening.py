"""Listeners on stream sockets: peers prove themselves side by side, so that none waits for one that does not."""

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
"""After which a peer that has connected and does not prove itself is turned away."""
MAX_AT_ONCE = 64
"""Peers that prove themselves at a time, and that wait to be taken: the oldest gives way to the next."""
MAX_OF_ONE_HOST = 32
"""Of those that prove themselves: a host that floods this one leaves room for others."""
PAUSE_S = 0.05
"""After a connection could not be taken, for want of descriptors or threads say."""

MakeChannel = Callable[[socket.socket, Deadline], Channel]


class SocketListener(Listener):
    """Takes connections of a listening socket.

    Parameters
    ----------
    server
        Which it closes at its end.
    address
        For peers.
    make
        Makes a channel of a connection, or closes it and raises a `TransportError`.
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
            raise PeerTimeoutError("waited for a peer, and the time is over") from None
        if channel is None:
            raise PeerLostError(f"nobody can connect to {self._address} any more")
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
        # Its descriptor is this thread's alone, so that its number is not another's while it waits.
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
                    # No more threads: the peer finds another way, and others may come when there are some again.
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
        # Nobody takes them any more, or not as fast as they come.
        if self._closed or self._ready.qsize() >= MAX_AT_ONCE:
            channel.close()
        else:
            self._ready.put(channel)


class _Unproven:
    """Connections whose peers have not proved themselves, the oldest first."""

    def __init__(self) -> None:
        self._hosts: dict[socket.socket, str] = {}
        self._lock = threading.Lock()

    def add(self, connection: socket.socket, host: str) -> None:
        """Take one more; the oldest of its host, or of all, are ended where there are too many."""
        with self._lock:
            same = [c for c, of in self._hosts.items() if of == host]
            if host and len(same) >= MAX_OF_ONE_HOST:
                self._end(same[0])
            elif len(self._hosts) >= MAX_AT_ONCE:
                self._end(next(iter(self._hosts)))
            self._hosts[connection] = host

    def remove(self, connection: socket.socket) -> None:
        """Forget one that has proved itself, or was turned away."""
        with self._lock:
            self._hosts.pop(connection, None)

    def _end(self, connection: socket.socket) -> None:
        # Its own thread closes it.
        del self._hosts[connection]
        sockets.end(connection)


def _host(peer: object) -> str:
    """Of an address as the system tells it; nothing of a socket of this host."""
    return str(peer[0]) if isinstance(peer, tuple) else ""
