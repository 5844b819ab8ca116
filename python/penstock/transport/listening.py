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
from penstock.transport.errors import PeerLateError, PeerLostError, TransportError

HANDSHAKE_S = 5.0
"""After which a peer that has connected and does not prove itself is turned away."""
MOST_AT_ONCE = 64
"""Peers that prove themselves, or wait to be taken; others wait in the kernel."""
PAUSE_S = 0.05
"""After a connection could not be taken, for want of descriptors say."""

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
        self._room = threading.Semaphore(MOST_AT_ONCE)
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
            raise PeerLateError("waited for a peer, and the time is over") from None
        if channel is None:
            raise PeerLostError(f"nobody can connect to {self._address} any more")
        self._room.release()
        return channel

    def close(self) -> None:
        """See `Listener`."""
        if self._closed:
            return
        self._closed = True
        sockets.end(self._server)
        self._room.release()
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
                self._room.acquire()
                try:
                    connection, _ = self._server.accept()
                except OSError:
                    self._room.release()
                    time.sleep(0 if self._closed else PAUSE_S)
                else:
                    threading.Thread(target=self._greet, args=(connection,), daemon=True).start()

    def _greet(self, connection: socket.socket) -> None:
        try:
            channel = self._make(connection, Deadline.after(HANDSHAKE_S))
        except (TransportError, OSError):
            self._room.release()
            return
        if self._closed:
            channel.close()
        else:
            self._ready.put(channel)
