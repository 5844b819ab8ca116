"""Connections to other sidecars, which are kept for later questions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from penstock.sidecars.transfer.offers import Addresses, Offers
from penstock.transport.channel import Channel, ReceiveBuffer
from penstock.transport.deadline import Deadline
from penstock.transport.errors import PeerLostError, TransportError

CONNECT_S = 2.0
"""Time limit for connecting, in seconds. After it, the next transport is tried."""
AVOID_S = 30.0
"""Time in seconds for which an unreachable address is not tried again. A restarted sidecar has a new address."""
MAX_IDLE = 32
"""Largest number of idle connections. The least recently used ones are closed first."""


@dataclass
class Counts:
    """Statistics of one transport since the sidecar started: answers begun, their bytes, and failures."""

    messages: int = 0
    bytes: int = 0
    failures: int = 0
    last_failure: str = ""


class Peers:
    """Asks other sidecars, by the best transport that reaches them."""

    def __init__(self, offers: Offers) -> None:
        self._offers = offers
        # The most recently used connection is the last.
        self._idle: list[tuple[tuple[str, str], Channel]] = []
        self._avoid_until: dict[tuple[str, str], float] = {}
        self._counts = {name: Counts() for name in offers.transports}
        self._lock = threading.Lock()

    @property
    def counts(self) -> dict[str, Counts]:
        """Statistics by transport."""
        with self._lock:
            return {name: Counts(**vars(count)) for name, count in self._counts.items()}

    def ask(
        self,
        peer: Addresses,
        request: Callable[[str], bytes],
        deadline: Deadline,
        begin: Callable[[str, int], ReceiveBuffer],
    ) -> None:
        """Send a request, and pass on the answer while it arrives.

        Parameters
        ----------
        peer
            Addresses of the peer.
        request
            Returns the request for the transport with the given name.
        deadline
            Deadline for the whole answer.
        begin
            As in `Channel.receive_parts`, with the transport's name before the size.

        Raises
        ------
        TransportError
            There is no answer. `begin` was not called, unless the peer failed in the middle of the answer.
        """
        offered = ", ".join(sorted(peer)) or "nothing"
        failure: TransportError = PeerLostError(
            f"no transport reaches the peer, which offers {offered}, or connecting failed recently"
        )
        for route in self._routes(peer):
            receive_buffer = _Begun(partial(self._note_answer, route[0]), partial(begin, route[0]))
            try:
                self._ask_by(route, request(route[0]), deadline, receive_buffer)
            except TransportError as error:
                failure = error
                self._note_failure(route[0], error)
                if receive_buffer.begun:
                    raise
            else:
                return
        raise failure

    def _routes(self, peer: Addresses) -> Iterator[tuple[str, str]]:
        """Iterate over routes to a peer (transport and address), except those that failed recently."""
        for route in self._offers.routes(peer):
            with self._lock:
                avoided = self._avoid_until.get(route, 0.0) > time.monotonic()
            if not avoided:
                yield route

    def _ask_by(self, route: tuple[str, str], request: bytes, deadline: Deadline, receive_buffer: _Begun) -> None:
        # The peer of an idle connection may be gone. Then the next connection shows whether it can be reached.
        while (channel := self._take(route)) is not None:
            try:
                self._ask_over(route, channel, request, deadline, receive_buffer)
            except PeerLostError:
                if receive_buffer.begun:
                    raise
            else:
                return
        self._ask_over(route, self._connect(route, deadline), request, deadline, receive_buffer)

    def _connect(self, route: tuple[str, str], deadline: Deadline) -> Channel:
        limit = Deadline(min(deadline.at_s, time.monotonic() + CONNECT_S))
        try:
            return self._offers.transports[route[0]].connect(route[1], limit)
        except TransportError:
            self._avoid(route)
            raise
        except OSError as error:
            # This process is out of shared memory or of descriptors.
            self._avoid(route)
            raise PeerLostError(f"cannot connect: {error}") from None

    def _avoid(self, route: tuple[str, str]) -> None:
        with self._lock:
            now = time.monotonic()
            self._avoid_until = {r: until for r, until in self._avoid_until.items() if until > now}
            self._avoid_until[route] = now + AVOID_S

    def _ask_over(
        self, route: tuple[str, str], channel: Channel, request: bytes, deadline: Deadline, receive_buffer: _Begun
    ) -> None:
        try:
            channel.send(request, deadline)
            channel.receive_parts(deadline, receive_buffer.begin)
        except BaseException:
            channel.close()
            raise
        with self._lock:
            self._idle.append((route, channel))
            surplus = self._idle[:-MAX_IDLE]
            self._idle = self._idle[-MAX_IDLE:]
        for _, unused in surplus:
            unused.close()

    def _take(self, route: tuple[str, str]) -> Channel | None:
        with self._lock:
            for at in reversed(range(len(self._idle))):
                if self._idle[at][0] == route:
                    return self._idle.pop(at)[1]
        return None

    def _note_answer(self, name: str, size: int) -> None:
        with self._lock:
            self._counts[name].messages += 1
            self._counts[name].bytes += size

    def _note_failure(self, name: str, error: TransportError) -> None:
        with self._lock:
            self._counts[name].failures += 1
            self._counts[name].last_failure = str(error)


class _Begun:
    """Records whether an answer has begun."""

    def __init__(self, note: Callable[[int], None], begin: Callable[[int], ReceiveBuffer]) -> None:
        self._note = note
        self._begin = begin
        self.begun = False

    def begin(self, size: int) -> ReceiveBuffer:
        self.begun = True
        self._note(size)
        return self._begin(size)
