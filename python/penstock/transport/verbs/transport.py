"""RDMA verbs between hosts (Whale, sections 3.3 and 4).

Slices are put into a ring of registered memory, from which the receiver reads them. Small control messages announce
slices and return credit.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from penstock.transport import slices, sockets
from penstock.transport.channel import Channel, Listener, Transport
from penstock.transport.deadline import Deadline
from penstock.transport.errors import PeerBrokenError, TransportError
from penstock.transport.handshake import Agreed
from penstock.transport.listening import SocketListener
from penstock.transport.verbs.device import name, open_device
from penstock.transport.verbs.endpoint import SLOTS, Endpoint

_opening = threading.Lock()
"""A new endpoint's descriptor is identified by comparison with earlier ones, so endpoints are opened one at a time."""


@dataclass(frozen=True)
class Verbs(Transport):
    """RDMA between hosts.

    Parameters
    ----------
    secret
        Secret of the application.
    host
        Name or address that listeners are bound to, and that peers use.

    Raises
    ------
    TransportError
        ``PENSTOCK_NO_VERBS``: there is no device, or no library for it.
    """

    secret: bytes = field(repr=False)
    host: str = "127.0.0.1"
    name = "verbs"
    number = 2
    needs_device = True

    def __post_init__(self) -> None:
        name()

    @classmethod
    def make(cls, secret: bytes, host: str, *, encrypted: bool) -> Verbs:
        """See `Transport`."""
        return cls(secret, host)

    def listen(self) -> Listener:
        """See `Transport`; on a port that the system chooses."""
        server, address = sockets.bind(self.host)
        return SocketListener(server, address, partial(self._channel, shake=sockets.shake_accepting))

    def connect(self, address: str, deadline: Deadline) -> Channel:
        """See `Transport`; `address` is ``host:port``."""
        return self._channel(sockets.dial(address, deadline), deadline, shake=sockets.shake_connecting)

    def _channel(self, control: socket.socket, deadline: Deadline, *, shake: Callable[..., Agreed]) -> Channel:
        with sockets.closed_on_error(control):
            peer = sockets.prepare(control)
            shake(control, self.secret, deadline, encrypted=False)
            with _opening:
                endpoint = Endpoint(open_device(), control)

        def close() -> None:
            endpoint.end()
            sockets.end(control)

        def release() -> None:
            endpoint.free()
            sockets.close(control)

        try:
            endpoint.meet(deadline)
        except TransportError:
            release()
            raise
        return Channel(peer, _Sender(endpoint), _Receiver(endpoint), close, release)


class _Sender:
    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._sent = 0

    def send(self, header: bytes, data: memoryview, deadline: Deadline) -> None:
        self._endpoint.wait(self._has_room, deadline, "the peer to read")
        at = self._sent % SLOTS * slices.SLICE_BYTES
        self._endpoint.ring[at : at + len(data)] = data
        self._endpoint.announce(header, deadline)
        self._sent += 1

    def _has_room(self) -> bool | None:
        taken = self._endpoint.credit
        if taken > self._sent:
            raise PeerBrokenError(f"the peer reports {taken} slices as taken, but {self._sent} were sent")
        return True if self._sent - taken < SLOTS else None


class _Receiver:
    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._taken = 0

    def header(self, deadline: Deadline) -> bytes:
        return self._endpoint.header(deadline)

    def data(self, into: memoryview, deadline: Deadline) -> None:
        if len(into):
            into[:] = self._endpoint.fetch(self._taken % SLOTS, len(into), deadline)
        self._taken += 1
        if self._taken % (SLOTS // 4) == 0:
            self._endpoint.give_credit(self._taken, deadline)
