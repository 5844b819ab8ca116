"""Connections to other sidecars, kept for the next question."""

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
"""After which the next transport is tried."""
AVOID_S = 30.0
"""For which an address that could not be connected to is not tried again. A sidecar that comes again has another."""
MAX_IDLE = 32
"""Connections that are kept while nobody uses them; those that were used longest ago are closed first."""


@dataclass
class Counts:
    """Of one transport, since the sidecar started: answers that have begun, their bytes, and what failed."""

    messages: int = 0
    bytes: int = 0
    failures: int = 0
    last_failure: str = ""


class Peers:
    """Asks other sidecars, by the best transport that reaches them."""

    def __init__(self, offers: Offers) -> None:
        self._offers = offers
        # In the order of their last use.
        self._idle: list[tuple[tuple[str, str], Channel]] = []
        self._avoid_until: dict[tuple[str, str], float] = {}
        self._counts = {name: Counts() for name in offers.transports}
        self._lock = threading.Lock()

    @property
    def counts(self) -> dict[str, Counts]:
        """By transport."""
        with self._lock:
            return {name: Counts(**vars(count)) for name, count in self._counts.items()}

    def ask(
        self,
        peer: Addresses,
        request: Callable[[str], bytes],
        deadline: Deadline,
        begin: Callable[[str, int], ReceiveBuffer],
    ) -> None:
        """Send a request, and hand the answer over while it comes.

        Parameters
        ----------
        peer
            Its addresses.
        request
            Gives the request for a transport by its name.
        begin
            As in `Channel.receive_parts`, with the transport's name before the size.

        Raises
        ------
        TransportError
            There is no answer. Nothing has been begun, unless the peer broke off in the middle.
        """
        offered = ", ".join(sorted(peer)) or "nothing"
        failure: TransportError = PeerLostError(
            f"no transport reaches the peer, which offers {offered}, or did just now"
        )
        for way in self._ways(peer):
            receive_buffer = _Begun(partial(self._note_answer, way[0]), partial(begin, way[0]))
            try:
                self._ask_by(way, request(way[0]), deadline, receive_buffer)
            except TransportError as error:
                failure = error
                self._note_failure(way[0], error)
                if receive_buffer.begun:
                    raise
            else:
                return
        raise failure

    def _ways(self, peer: Addresses) -> Iterator[tuple[str, str]]:
        """Give ways to a peer, but for those by which it could not be reached a moment ago."""
        for way in self._offers.ways(peer):
            with self._lock:
                avoided = self._avoid_until.get(way, 0.0) > time.monotonic()
            if not avoided:
                yield way

    def _ask_by(self, way: tuple[str, str], request: bytes, deadline: Deadline, receive_buffer: _Begun) -> None:
        # One that was idle may be to a peer that has gone meanwhile: another connection then tells.
        while (channel := self._take(way)) is not None:
            try:
                self._ask_over(way, channel, request, deadline, receive_buffer)
            except PeerLostError:
                if receive_buffer.begun:
                    raise
            else:
                return
        self._ask_over(way, self._connect(way, deadline), request, deadline, receive_buffer)

    def _connect(self, way: tuple[str, str], deadline: Deadline) -> Channel:
        limit = Deadline(min(deadline.at_s, time.monotonic() + CONNECT_S))
        try:
            return self._offers.transports[way[0]].connect(way[1], limit)
        except TransportError:
            self._avoid(way)
            raise
        except OSError as error:
            # This process has no room: for shared memory, or for another descriptor.
            self._avoid(way)
            raise PeerLostError(f"no connection can be made: {error}") from None

    def _avoid(self, way: tuple[str, str]) -> None:
        with self._lock:
            now = time.monotonic()
            self._avoid_until = {w: until for w, until in self._avoid_until.items() if until > now}
            self._avoid_until[way] = now + AVOID_S

    def _ask_over(
        self, way: tuple[str, str], channel: Channel, request: bytes, deadline: Deadline, receive_buffer: _Begun
    ) -> None:
        try:
            channel.send(request, deadline)
            channel.receive_parts(deadline, receive_buffer.begin)
        except BaseException:
            channel.close()
            raise
        with self._lock:
            self._idle.append((way, channel))
            surplus = self._idle[:-MAX_IDLE]
            self._idle = self._idle[-MAX_IDLE:]
        for _, unused in surplus:
            unused.close()

    def _take(self, way: tuple[str, str]) -> Channel | None:
        with self._lock:
            for at in reversed(range(len(self._idle))):
                if self._idle[at][0] == way:
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
    """Whether an answer has begun."""

    def __init__(self, note: Callable[[int], None], begin: Callable[[int], ReceiveBuffer]) -> None:
        self._note = note
        self._begin = begin
        self.begun = False

    def begin(self, size: int) -> ReceiveBuffer:
        self.begun = True
        self._note(size)
        return self._begin(size)
