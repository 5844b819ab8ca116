"""Connections to other sidecars, kept for the next question."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from penstock.courier.offers import Addresses, Offers
from penstock.transport.channel import Channel, Landing
from penstock.transport.deadline import Deadline
from penstock.transport.errors import PeerLostError, TransportError

CONNECT_S = 2.0
"""After which the next transport is tried."""
AVOID_S = 30.0
"""For which a transport that did not reach a peer is not tried again."""
MOST_IDLE = 4
"""Connections to one peer that are kept while nobody uses them."""


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
        self._idle: dict[tuple[str, str], list[Channel]] = {}
        self._avoid_until: dict[tuple[str, str], float] = {}
        self._counts = {name: Counts() for name in offers.transports}
        self._lock = threading.Lock()

    @property
    def counts(self) -> dict[str, Counts]:
        """By transport."""
        with self._lock:
            return {name: Counts(**vars(count)) for name, count in self._counts.items()}

    def ask(self, peer: Addresses, request: bytes, deadline: Deadline, begin: Callable[[int], Landing]) -> None:
        """Send a request, and hand the answer over while it comes.

        Parameters
        ----------
        peer
            Its addresses.
        begin
            As in `Channel.receive_parts`.

        Raises
        ------
        TransportError
            There is no answer. Nothing has been begun, unless the peer broke off in the middle.
        """
        failure: TransportError = PeerLostError(f"no transport reaches the peer: it offers {', '.join(sorted(peer))}")
        for way in self._ways(peer):
            landing = _Begun(partial(self._note_answer, way[0]), begin)
            try:
                self._ask_by(way, request, deadline, landing)
            except TransportError as error:
                failure = error
                self._note_failure(way, error)
                if landing.begun:
                    raise
            else:
                return
        raise failure

    def _ways(self, peer: Addresses) -> Iterator[tuple[str, str]]:
        """Give ways to a peer; those that have just failed come last."""
        now = time.monotonic()
        ways = list(self._offers.ways(peer))
        with self._lock:
            avoided = [way for way in ways if self._avoid_until.get(way, 0.0) > now]
        yield from [way for way in ways if way not in avoided]
        yield from avoided

    def _ask_by(self, way: tuple[str, str], request: bytes, deadline: Deadline, landing: _Begun) -> None:
        # One that was idle may be to a peer that has gone meanwhile: another connection then tells.
        while (channel := self._take(way)) is not None:
            try:
                self._ask_over(way, channel, request, deadline, landing)
            except PeerLostError:
                if landing.begun:
                    raise
            else:
                return
        limit = Deadline(min(deadline.at_s, time.monotonic() + CONNECT_S))
        channel = self._offers.transports[way[0]].connect(way[1], limit)
        self._ask_over(way, channel, request, deadline, landing)

    def _ask_over(
        self, way: tuple[str, str], channel: Channel, request: bytes, deadline: Deadline, landing: _Begun
    ) -> None:
        try:
            channel.send(request, deadline)
            channel.receive_parts(deadline, landing.begin)
        except BaseException:
            channel.close()
            raise
        with self._lock:
            idle = self._idle.setdefault(way, [])
            if len(idle) < MOST_IDLE:
                idle.append(channel)
                return
        channel.close()

    def _take(self, way: tuple[str, str]) -> Channel | None:
        with self._lock:
            idle = self._idle.get(way)
            return idle.pop() if idle else None

    def _note_answer(self, name: str, size: int) -> None:
        with self._lock:
            self._counts[name].messages += 1
            self._counts[name].bytes += size

    def _note_failure(self, way: tuple[str, str], error: TransportError) -> None:
        with self._lock:
            count = self._counts[way[0]]
            count.failures += 1
            count.last_failure = str(error)
            self._avoid_until[way] = time.monotonic() + AVOID_S


class _Begun:
    """Whether an answer has begun."""

    def __init__(self, note: Callable[[int], None], begin: Callable[[int], Landing]) -> None:
        self._note = note
        self._begin = begin
        self.begun = False

    def begin(self, size: int) -> Landing:
        self.begun = True
        self._note(size)
        return self._begin(size)
