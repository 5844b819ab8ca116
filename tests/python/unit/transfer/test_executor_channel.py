"""The channel between an executor and its sidecar: its memory, messages and records."""

import os
import socket
import sys
import threading
import time

import pytest
from executor_end import offer, soon
from hypothesis import given
from hypothesis import strategies as st
from penstock.sidecars.transfer.channel_records import RECORD, BrokenChannelError, Kind, Record, decode, encode
from penstock.sidecars.transfer.executor_channel import (
    MEMORY_BYTES,
    RING_BYTES,
    SLOTS,
    ChannelMemory,
    ExecutorChannel,
    GivenUpError,
)
from penstock.transport import deadline, slices
from penstock.transport.errors import PeerTimeoutError, TransportError


@pytest.mark.parametrize("has_receive_buffer", [False, True])
def test_the_memory_of_an_earlier_sidecar_is_reused(has_receive_buffer):
    earlier = ChannelMemory.new(has_receive_buffer=has_receive_buffer)
    mine = ChannelMemory.adopted(earlier.record, has_receive_buffer=has_receive_buffer)
    assert os.fstat(mine.descriptor).st_ino == os.fstat(earlier.descriptor).st_ino
    earlier.bytes[-1] = 7
    assert mine.bytes[-1] == 7


def test_only_memory_of_a_channel_is_reused(tmp_path):
    file = (tmp_path / "file").open("w+b")
    file.truncate(MEMORY_BYTES)
    unsealed, longer = (os.memfd_create("penstock-channel", os.MFD_ALLOW_SEALING) for _ in range(2))
    os.ftruncate(unsealed, MEMORY_BYTES)
    os.ftruncate(longer, MEMORY_BYTES + 1)
    for descriptor in (file.fileno(), unsealed, longer, 1 << 20):
        mine = ChannelMemory.adopted(offer(b"G", process=os.getpid(), descriptor=descriptor))
        assert len(mine.bytes) == MEMORY_BYTES
        assert not any(mine.bytes[:4096])
        mine.bytes[0] = 1
        if descriptor != 1 << 20:
            assert os.pread(descriptor, 1, 0) == b"\0"
    # The process does not exist.
    assert len(ChannelMemory.adopted(offer(b"G", process=2**31 - 1, descriptor=3)).bytes) == MEMORY_BYTES
    file.close()
    for descriptor in (unsealed, longer):
        os.close(descriptor)


@pytest.fixture
def channel_ends():
    one, other = socket.socketpair()
    memory = ChannelMemory.new()
    yield ExecutorChannel(one, memory.bytes), ExecutorChannel(other, memory.bytes, is_executor=True), other
    one.close()
    other.close()


@pytest.mark.parametrize("counter", [0, 1, 2**64 - 1])
def test_records_are_received_whatever_the_counters_of_the_doorbell_are(counter):
    one, other = socket.socketpair()
    memory = ChannelMemory.new()
    sidecar, executor = ExecutorChannel(one, memory.bytes), ExecutorChannel(other, memory.bytes, is_executor=True)
    counters = memory.bytes[2 * RING_BYTES : MEMORY_BYTES]
    for n in range(3):
        for at in (0, 64):
            counters[at : at + 8] = counter.to_bytes(8, sys.byteorder)
        executor.send(b"question %d" % n, soon())
        assert sidecar.message(soon(), 20) == b"question %d" % n
        sidecar.send(b"answer", soon())
        assert executor.message(soon(), 20) == b"answer"
    with pytest.raises(PeerTimeoutError):
        executor.message(soon(0.1), 20)
    one.close()
    other.close()


def test_a_sender_waits_if_nothing_is_read(channel_ends):
    sidecar, executor, _ = channel_ends
    size = (SLOTS + 1) * slices.SLICE_BYTES
    with pytest.raises(PeerTimeoutError):
        sidecar.send(bytes(size), soon(0.2))
    total, parts = executor.receive(soon(), 10.0)
    assert total == size
    assert sum(1 for _, _ in zip(range(SLOTS), parts, strict=False)) == SLOTS


class Clock:
    """The clock of deadlines, set forward by `ahead_s` seconds."""

    def __init__(self, monkeypatch):
        self.ahead_s = 0.0
        monkeypatch.setattr(deadline, "time", self)

    def monotonic(self):
        return time.monotonic() + self.ahead_s


def test_a_slow_reader_has_the_time_limit_for_each_slice(channel_ends, monkeypatch):
    sidecar, executor, _ = channel_ends
    clock = Clock(monkeypatch)
    message = os.urandom(20 * slices.SLICE_BYTES)
    sender = threading.Thread(target=sidecar.send, args=(message, soon(3600)))
    sender.start()
    size, parts = executor.receive(soon(), 20.0)
    taken = bytearray()
    for part in parts:
        # Longer than the limit for a slice: the reader was busy with something else.
        clock.ahead_s += 30.0
        taken += part
    sender.join()
    assert (size, bytes(taken)) == (len(message), message)


def test_a_message_can_be_given_up_halfway(channel_ends):
    sidecar, executor, _ = channel_ends
    receive_buffer = sidecar.begin(3 * slices.SLICE_BYTES)
    receive_buffer.part(slices.SLICE_BYTES, soon())[:] = os.urandom(slices.SLICE_BYTES)
    receive_buffer.received(slices.SLICE_BYTES)
    sidecar.give_up()
    with pytest.raises(GivenUpError):
        executor.message(soon(), 1 << 30)
    sidecar.send(b"next", soon())
    assert executor.message(soon(), 4) == b"next"
    executor.send(b"and back", soon())
    assert sidecar.message(soon(), 8) == b"and back"


@pytest.mark.parametrize(
    "record",
    [
        Record(Kind.SLICE, 1, 5, 5),
        Record(Kind.SLICE, 0, 5, 4),
        Record(Kind.SLICE, 0, 2 << 30, slices.SLICE_BYTES),
        Record(Kind.TAKEN, 1),
        Record(Kind.CHANNEL_MEMORY, 0),
    ],
)
def test_unexpected_records_break_a_channel(channel_ends, record):
    sidecar, _, connection = channel_ends
    connection.sendall(encode(record))
    with pytest.raises(BrokenChannelError):
        sidecar.message(soon(), 1 << 30)


def test_a_message_above_the_limit_breaks_a_channel(channel_ends):
    sidecar, executor, _ = channel_ends
    executor.send(b"12345", soon())
    with pytest.raises(BrokenChannelError, match="5 bytes, at most 4 are allowed"):
        sidecar.message(soon(), 4)


@given(st.binary(min_size=RECORD.size, max_size=RECORD.size))
def test_random_bytes_are_not_a_record(data):
    with pytest.raises(BrokenChannelError):
        decode(data)


@given(st.sampled_from(Kind), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1))
def test_records_are_read_back_and_a_flipped_bit_is_found(kind, number, message_bytes, data_bytes):
    record = Record(kind, number, message_bytes, data_bytes)
    data = encode(record)
    assert decode(data) == record
    for bit in range(0, 8 * RECORD.size, 7):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(BrokenChannelError):
            decode(bytes(flipped))


def test_a_channel_whose_other_side_is_closed_fails(channel_ends):
    sidecar, _, connection = channel_ends
    connection.close()
    with pytest.raises(TransportError):
        sidecar.message(soon(), 1)
    with pytest.raises(TransportError):
        sidecar.send(b"x", soon())
