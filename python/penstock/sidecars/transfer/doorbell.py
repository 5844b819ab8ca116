"""Sends and receives the records of an executor channel, and counts them in its memory: who waits need not sleep."""

from __future__ import annotations

import socket
import time

from penstock.sidecars.transfer.channel_records import RECORD, Record, decode, encode
from penstock.transport import sockets
from penstock.transport.deadline import Deadline
from penstock.transport.errors import TransportError

COUNTERS_BYTES = 4096
_OF_EXECUTOR, _OF_SIDECAR = 0, 64
_COUNTER_BYTES = 8
_AT_ONCE = 16
_LOOK_NS = 50_000
"""For which one looks at the counter before one sleeps: as long as it takes to be woken."""


class Doorbell:
    """One side's. For one thread at a time.

    Parameters
    ----------
    connection
        Which it does not close.
    counters
        How many records each side has said; no more than hints.
    is_executor
        Whether this is the executor's side.
    """

    def __init__(self, connection: socket.socket, counters: memoryview, *, is_executor: bool) -> None:
        of_executor, of_sidecar = (counters[at : at + _COUNTER_BYTES].cast("Q") for at in (_OF_EXECUTOR, _OF_SIDECAR))
        self._said, self._theirs = (of_executor, of_sidecar) if is_executor else (of_sidecar, of_executor)
        self._connection = connection
        self._say_count = 0
        self._heard_bytes = 0
        self._bytes = memoryview(bytearray(_AT_ONCE * RECORD.size))
        self._from = 0
        self._to = 0

    def say(self, record: Record) -> None:
        """Say a record.

        Raises
        ------
        TransportError
            The other side is gone.
        """
        # As many records as there are slots fit into the socket's buffer: it does not wait.
        try:
            self._connection.sendall(encode(record))
        except OSError as error:
            raise TransportError(
                "PENSTOCK_CHANNEL_LOST", f"the other side of an executor channel is gone: {error}"
            ) from None
        self._say_count += 1
        self._said[0] = self._say_count

    def next(self, deadline: Deadline) -> Record:
        """Wait for a record. What has come of one by the deadline is kept.

        Raises
        ------
        PeerTimeoutError, PeerLostError
            None came.
        BrokenChannelError
            What came is none.
        """
        while self._to - self._from < RECORD.size:
            self._look()
            self._bytes[: self._to - self._from] = self._bytes[self._from : self._to]
            self._from, self._to = 0, self._to - self._from
            came = sockets.read_some(
                self._connection, self._bytes[self._to :], deadline, "the other side of an executor channel"
            )
            self._to += came
            self._heard_bytes += came
        self._from += RECORD.size
        return decode(bytes(self._bytes[self._from - RECORD.size : self._from]))

    def _look(self) -> None:
        heard = self._heard_bytes // RECORD.size
        until_ns = time.monotonic_ns() + _LOOK_NS
        while self._theirs[0] == heard and time.monotonic_ns() < until_ns:
            pass
