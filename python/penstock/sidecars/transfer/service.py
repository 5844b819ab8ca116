"""Carries questions of this executor to other executors, and their questions to this one, without interpreting them."""

from __future__ import annotations

import json
import os
import queue
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import Any

from penstock.sidecars.transfer.channel_records import BrokenChannelError
from penstock.sidecars.transfer.executor_channel import ExecutorChannel, GivenUpError
from penstock.sidecars.transfer.offers import Addresses
from penstock.sidecars.transfer.peers import Peers
from penstock.transport.channel import Channel, ReceiveBuffer
from penstock.transport.deadline import Deadline
from penstock.transport.errors import PeerTimeoutError, TransportError
from penstock.transport.registry import TRANSPORTS

QUESTION = struct.Struct("<BBHIQ")
ENVELOPE = struct.Struct("<BBHIIIQ")
"""Precedes a question between sidecars. Says where the answer may be written directly."""
ENVELOPE_VERSION = 1
MAX_QUESTION_BYTES = 1 << 20
IDLE_S = 3600.0
"""Upper bound for an idle wait, in seconds."""
GIVE_S = 30.0
"""Time in which an executor must answer another executor's question, in seconds."""
FREE_S = 5.0
"""Time in which an executor channel must become free, in seconds; otherwise the question is refused."""
OUTCOME_BITS = 0x0F
"""Bits of an answer's first byte that hold the outcome. The others hold the number of the transport."""


class ExecutorChannelFailedError(Exception):
    """The executor is gone or violates the protocol, so this process is of no further use."""


class What(IntEnum):
    """What an executor asks of its sidecar."""

    ASK = 1
    ECHO = 2
    STATUS = 3


class Outcome(IntEnum):
    """First byte of an answer."""

    HERE = 0
    REFUSED = 1
    """The peer's executor does not have what was asked for."""
    LOST = 2
    """The question or its answer did not get through."""
    DIRECT = 3
    """The answer is written directly to the memory where it is read, bypassing the sidecars."""


@dataclass(frozen=True)
class Question:
    """A question of an executor.

    Parameters
    ----------
    what
        Kind of the question.
    deadline_ms
        Time in which the answer is wanted, from now.
    peer
        Addresses of the sidecar that the question is for.
    payload
        Content for the peer's executor.
    token
        Token under which the answer is expected in the channel's receive buffer; 0 if it is not expected there.
    """

    what: What
    deadline_ms: int
    peer: Addresses
    payload: bytes
    token: int = 0


def read_question(message: bytes) -> Question:
    """Decode a question.

    Raises
    ------
    BrokenChannelError
        The message is not a valid question.
    """
    if len(message) < QUESTION.size:
        raise BrokenChannelError(f"a question has {len(message)} bytes, expected at least {QUESTION.size}")
    what, zero, address_bytes, deadline_ms, token = QUESTION.unpack_from(message)
    addresses = message[QUESTION.size : QUESTION.size + address_bytes]
    try:
        peer: Any = json.loads(addresses) if addresses else {}
        known = What(what)
    except (ValueError, RecursionError) as error:
        raise BrokenChannelError(f"invalid question: {error}") from None
    if zero or len(addresses) != address_bytes or not _are_addresses(peer):
        raise BrokenChannelError("a question has no valid addresses")
    return Question(known, deadline_ms, peer, message[QUESTION.size + address_bytes :], token)


def write_question(question: Question) -> bytes:
    """Encode a question."""
    addresses = json.dumps(dict(question.peer)).encode() if question.peer else b""
    head = QUESTION.pack(question.what, 0, len(addresses), question.deadline_ms, question.token)
    return head + addresses + question.payload


class TransferService:
    """Serves executor channels and peers, each on its own thread.

    Parameters
    ----------
    peers
        Connections to the sidecars of other executors.
    """

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._senders: queue.SimpleQueue[ExecutorChannel] = queue.SimpleQueue()

    def add_sender(self, executor_channel: ExecutorChannel) -> None:
        """Use an executor channel to ask this executor the questions of other executors."""
        self._senders.put(executor_channel)

    def answer(self, executor_channel: ExecutorChannel) -> None:
        """Answer the questions of this executor on an executor channel, for as long as it exists.

        Raises
        ------
        ExecutorChannelFailedError
            The executor is gone, or sends an invalid question.
        """
        while True:
            try:
                self._answer(executor_channel)
            except PeerTimeoutError:
                continue
            except (TransportError, BrokenChannelError, GivenUpError) as error:
                raise ExecutorChannelFailedError(str(error)) from error

    def _answer(self, executor_channel: ExecutorChannel) -> None:
        question = read_question(executor_channel.message(Deadline.after(IDLE_S), MAX_QUESTION_BYTES))
        try:
            if question.what == What.ECHO:
                executor_channel.send(_here(question.payload), _until(question))
            elif question.what == What.STATUS:
                executor_channel.send(_here(json.dumps(self._status()).encode()), _until(question))
            else:
                self._ask(executor_channel, question)
        except PeerTimeoutError as error:
            # The executor does not read the answer.
            raise ExecutorChannelFailedError(str(error)) from error

    def serve(self, channel: Channel, transport: str) -> None:
        """Answer the questions of a peer until it closes or breaks the connection.

        Parameters
        ----------
        channel
            Channel to the peer.
        transport
            Name of the channel's transport.

        Raises
        ------
        ExecutorChannelFailedError
            The executor is gone, or sends an invalid answer.
        """
        with channel:
            while True:
                try:
                    payload = channel.receive(Deadline.after(IDLE_S), most=ENVELOPE.size + MAX_QUESTION_BYTES)
                except PeerTimeoutError:
                    # The peer was idle, or the rest of a message did not arrive.
                    if channel.usable:
                        continue
                    return
                except TransportError:
                    return
                try:
                    self._give(channel, _of_transport(bytes(payload), transport))
                except TransportError:
                    return

    def _ask(self, executor_channel: ExecutorChannel, question: Question) -> None:
        begun = False

        def begin(transport: str, size: int) -> ReceiveBuffer:
            nonlocal begun
            begun = True
            return _Marked(executor_channel.begin(size), TRANSPORTS[transport].number)

        try:
            self._peers.ask(question.peer, partial(_enveloped, question, executor_channel), _until(question), begin)
        except TransportError as error:
            if begun:
                executor_channel.give_up()
            else:
                executor_channel.send(bytes([Outcome.LOST]) + str(error).encode(), Deadline.after(IDLE_S))

    def _give(self, channel: Channel, payload: bytes) -> None:
        try:
            executor_channel = self._senders.get(timeout=FREE_S)
        except queue.Empty:
            channel.send(bytes([Outcome.REFUSED]) + b"all channels to the executor are busy", Deadline.after(GIVE_S))
            return
        try:
            limit_s = _limit_s(payload)
        except BrokenChannelError:
            self._senders.put(executor_channel)
            channel.close()
            return
        try:
            executor_channel.send(payload, Deadline.after(GIVE_S))
            # An executor that is asked to take shards answers only when it has them.
            size, parts = executor_channel.receive(Deadline.after(max(GIVE_S, limit_s)), GIVE_S)
        except GivenUpError:
            self._senders.put(executor_channel)
            channel.send(bytes([Outcome.REFUSED]) + b"the executor gave up", Deadline.after(GIVE_S))
            return
        except (TransportError, BrokenChannelError) as error:
            raise ExecutorChannelFailedError(str(error)) from error
        taken = _Taken(parts)
        try:
            channel.send_parts(size, taken, Deadline.after(GIVE_S))
        finally:
            # The rest of the answer must be read even if the peer fails, so that the executor channel can be reused.
            taken.finish()
            if taken.outcome == Outcome.DIRECT:
                self._await_receive_buffer(executor_channel, limit_s)
            self._senders.put(executor_channel)

    @staticmethod
    def _await_receive_buffer(executor_channel: ExecutorChannel, limit_s: float) -> None:
        """Wait until the executor is ready for the next question."""
        try:
            executor_channel.message(Deadline.after(limit_s + GIVE_S), 1)
        except (TransportError, BrokenChannelError, GivenUpError) as error:
            raise ExecutorChannelFailedError(str(error)) from error

    def _status(self) -> dict[str, Any]:
        return {name: vars(count) for name, count in self._peers.counts.items()}


class _Marked:
    """Receive buffer that writes the transport's number into the first byte of an answer, above its outcome."""

    def __init__(self, receive_buffer: ReceiveBuffer, mark: int) -> None:
        self._receive_buffer = receive_buffer
        self._mark = mark
        self._first: memoryview | None = None

    def part(self, length: int, deadline: Deadline) -> memoryview:
        part = self._receive_buffer.part(length, deadline)
        if self._mark and length:
            self._first = part
        return part

    def received(self, length: int) -> None:
        if self._first is not None:
            self._first[0] = self._first[0] & OUTCOME_BITS | self._mark << 4
            self._first, self._mark = None, 0
        self._receive_buffer.received(length)


class _Taken:
    """Slices of an answer in an executor channel. `finish` reads those that were not sent."""

    def __init__(self, parts: Iterator[memoryview]) -> None:
        self._parts = parts
        self.outcome: int | None = None
        """First byte of the answer."""

    def __iter__(self) -> Iterator[memoryview]:
        return self

    def __next__(self) -> memoryview:
        try:
            part = next(self._parts)
            if self.outcome is None and part:
                self.outcome = part[0]
            return part
        except GivenUpError:
            raise TransportError("PENSTOCK_GIVEN_UP", "the executor could not finish its answer") from None
        except (TransportError, BrokenChannelError) as error:
            raise ExecutorChannelFailedError(str(error)) from error

    def finish(self) -> None:
        """Read the remaining slices."""
        try:
            for _ in self:
                pass
        except TransportError:
            return


def _enveloped(question: Question, executor_channel: ExecutorChannel, transport: str) -> bytes:
    """Prepend the envelope to a question. Only a transport within this host may write the answer directly."""
    is_direct = TRANSPORTS[transport].within_host and question.token
    memory = (os.getpid(), executor_channel.descriptor) if is_direct else (0, 0)
    return ENVELOPE.pack(ENVELOPE_VERSION, 0, 0, *memory, question.deadline_ms, question.token) + question.payload


def _of_transport(question: bytes, transport: str) -> bytes:
    """Remove the location for direct answers, unless the question came from a process of this host.

    Only such processes may name memory of this host.
    """
    if TRANSPORTS[transport].within_host or len(question) < ENVELOPE.size:
        return question
    version, zero, zeros, _, _, limit_ms, _ = ENVELOPE.unpack_from(question)
    return ENVELOPE.pack(version, zero, zeros, 0, 0, limit_ms, 0) + question[ENVELOPE.size :]


def _limit_s(question: bytes) -> float:
    """Return the time in which a peer wants the answer to its question, in seconds."""
    if len(question) < ENVELOPE.size or question[0] != ENVELOPE_VERSION:
        raise BrokenChannelError("the envelope of a question is invalid")
    limit_ms: int = ENVELOPE.unpack_from(question)[5]
    return limit_ms / 1000


def _here(payload: bytes) -> bytes:
    return bytes([Outcome.HERE]) + payload


def _until(question: Question) -> Deadline:
    return Deadline.after(question.deadline_ms / 1000)


def _are_addresses(peer: Any) -> bool:
    return isinstance(peer, dict) and all(isinstance(text, str) for text in peer.values())
