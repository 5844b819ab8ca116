"""Sends and receives the records of an executor channel. Counters in its memory let a waiting side avoid sleeping."""

from __future__ import annotations

import socket
import time

from penstock.sidecars.transfer.channel_records import RECORD, Record, decode, encode
from penstock.transport import sockets
from penstock.transport.deadline import Deadline
from penstock.transport.errors import TransportError

COUNTERS_BYTES = 4096
_EXECUTOR_OFFSET, _SIDECAR_OFFSET = 0, 64
_COUNTER_BYTES = 8
_AT_ONCE = 16
_LOOK_NS = 50_000
"""Time for which the counter is polled before sleeping: about as long as a wake-up takes."""


class Doorbell:
    """One side's doorbell; for one thread at a time.

    Parameters
    ----------
    connection
        Socket to the other side. The doorbell does not close it.
    counters
        Number of records that each side has sent. They are only hints.
    is_executor
        Whether this is the executor's side.
    """

    def __init__(self, connection: socket.socket, counters: memoryview, *, is_executor: bool) -> None:
        executor_counter, sidecar_counter = (
            counters[at : at + _COUNTER_BYTES].cast("Q") for at in (_EXECUTOR_OFFSET, _SIDECAR_OFFSET)
        )
        self._own_counter, self._peer_counter = (
            (executor_counter, sidecar_counter) if is_executor else (sidecar_counter, executor_counter)
        )
        self._connection = connection
        self._sent = 0
        self._received_bytes = 0
        self._bytes = memoryview(bytearray(_AT_ONCE * RECORD.size))
        self._from = 0
        self._to = 0

    def say(self, record: Record) -> None:
        """Send a record.

        Raises
        ------
        TransportError
            The other side is gone.
        """
        # This does not block: the socket's buffer has room for at least one record per slot.
        try:
            self._connection.sendall(encode(record))
        except OSError as error:
            raise TransportError(
                "PENSTOCK_CHANNEL_LOST", f"the other side of an executor channel is gone: {error}"
            ) from None
        self._sent += 1
        self._own_counter[0] = self._sent

    def next(self, deadline: Deadline) -> Record:
        """Wait for a record. A partly received record is kept if the deadline passes.

        Raises
        ------
        PeerTimeoutError, PeerLostError
            No record was received.
        BrokenChannelError
            The received bytes are not a valid record.
        """
        while self._to - self._from < RECORD.size:
            self._look()
            self._bytes[: self._to - self._from] = self._bytes[self._from : self._to]
            self._from, self._to = 0, self._to - self._from
            received = sockets.read_some(
                self._connection, self._bytes[self._to :], deadline, "the other side of an executor channel"
            )
            self._to += received
            self._received_bytes += received
        self._from += RECORD.size
        return decode(bytes(self._bytes[self._from - RECORD.size : self._from]))

    def _look(self) -> None:
        received = self._received_bytes // RECORD.size
        until_ns = time.monotonic_ns() + _LOOK_NS
        while self._peer_counter[0] == received and time.monotonic_ns() < until_ns:
            pass
