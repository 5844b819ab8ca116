"""Transfer sidecars as real processes, with the executor's side in this process."""

import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from executor_end import SECRET, ExecutorEnd, Landed, RefuseError, offer
from hypothesis import given
from hypothesis import strategies as st
from penstock.sidecars.transfer import service
from penstock.sidecars.transfer.__main__ import read_start
from penstock.sidecars.transfer.channel_records import RECORD, BrokenChannelError, Kind, Record, decode, encode
from penstock.sidecars.transfer.executor_channel import (
    LANDING_BYTES,
    MEMORY_BYTES,
    RING_BYTES,
    SLOTS,
    ChannelMemory,
    ExecutorChannel,
    GivenUpError,
)
from penstock.sidecars.transfer.offers import HOST, Offers
from penstock.sidecars.transfer.peers import MAX_IDLE, Peers
from penstock.sidecars.transfer.service import (
    Outcome,
    Question,
    TransferService,
    What,
    read_question,
    write_question,
)
from penstock.transport import slices
from penstock.transport.deadline import Deadline
from penstock.transport.errors import PeerLostError, PeerTimeoutError, TransportError
from penstock.transport.registry import FALLBACK, TRANSPORTS
from penstock.transport.tcp import Tcp

MIB = 1 << 20


def soon(seconds=10.0):
    return Deadline.after(seconds)


@pytest.fixture(scope="module")
def pairs():
    """Yield a function that gives two executors for a transport. A question is the number of bytes of its answer."""
    made = {}

    def pair(transport):
        if transport not in made:
            made[transport] = [ExecutorEnd(answer, transport=transport) for _ in range(2)]
        return made[transport]

    yield pair
    for ends in made.values():
        for end in ends:
            end.close()


def answer(payload):
    size = int(payload)
    if size < 0:
        raise RefuseError("there is nothing of that size")
    return pattern(size)


def pattern(size):
    return (bytes(range(251)) * (size // 251 + 1))[:size]


@pytest.mark.parametrize("transport", [name for name, made in TRANSPORTS.items() if not made.needs_device])
def test_answers_arrive_complete_by_the_configured_transport(pairs, transport):
    one, other = pairs(transport)
    assert transport in one.addresses
    # All executors can fall back to one transport.
    assert set(one.addresses) == {HOST, FALLBACK, transport}
    before = one.status()[transport]["messages"]
    for size in (0, 1, slices.SLICE_BYTES - 1, slices.SLICE_BYTES, 10 * MIB):
        assert one.ask(other.addresses, str(size).encode()) == (Outcome.HERE, pattern(size))
    status = one.status()[transport]
    assert (status["messages"] - before, status["failures"]) == (5, 0)
    assert one.ask(other.addresses, b"-1") == (Outcome.REFUSED, b"there is nothing of that size")
    # Also in the other direction.
    assert other.ask(one.addresses, b"7") == (Outcome.HERE, pattern(7))
    assert set(one.answered_by + other.answered_by) == {TRANSPORTS[transport].number}


def test_questions_can_be_asked_concurrently(pairs):
    one, other = pairs("local")
    found = []

    def ask(size):
        found.append((size, one.ask(other.addresses, str(size).encode())))

    threads = [threading.Thread(target=ask, args=(size,)) for size in range(0, 40 * MIB, 5 * MIB)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(received == (Outcome.HERE, pattern(size)) for size, received in found)
    assert len(found) == 8


def test_the_best_transport_that_both_have_is_used():
    with ExecutorEnd() as one, ExecutorEnd() as two, ExecutorEnd(transport="tcp") as plain:
        assert one.ask(two.addresses, b"x") == (Outcome.HERE, b"x")
        assert one.ask(plain.addresses, b"y") == (Outcome.HERE, b"y")
        elsewhere = two.addresses | {HOST: "another boot"}
        assert one.ask(elsewhere, b"z") == (Outcome.HERE, b"z")
        counts = {name: count["messages"] for name, count in one.status().items()}
        assert counts == {"local": 1, "tcp": 2}
        assert "spark.penstock.transport=mpi" in one.announced["missing"]["mpi"]
        assert one.announced["missing"]["verbs"]
        assert plain.announced["missing"]["local"] == "spark.penstock.transport=tcp"


def test_the_next_transport_is_used_if_one_fails():
    with ExecutorEnd() as one, ExecutorEnd() as two:
        broken = two.addresses | {"local": "@penstock-nobody"}
        for _ in range(2):
            assert one.ask(broken, b"x") == (Outcome.HERE, b"x")
        status = one.status()
        # The transport that failed is not tried again at once.
        assert (status["local"]["failures"], status["tcp"]["messages"]) == (1, 2)
        assert "PENSTOCK_PEER_LOST" in status["local"]["last_failure"]


def test_data_that_must_be_encrypted_is_not_sent_in_clear():
    with ExecutorEnd(encrypted=True) as one, ExecutorEnd(encrypted=True) as two, ExecutorEnd() as plain:
        assert set(one.addresses) == {HOST, "tcp"}
        assert "must be encrypted" in one.announced["missing"]["local"]
        assert one.ask(two.addresses, b"x" * (MIB // 2)) == (Outcome.HERE, b"x" * (MIB // 2))
        outcome, why = one.ask(plain.addresses, b"x")
        assert outcome == Outcome.LOST
        assert b"PENSTOCK_PEER" in why


def test_peers_of_another_application_and_unreachable_peers_are_lost():
    with ExecutorEnd() as one, ExecutorEnd(secret=b"another application") as stranger:
        assert one.ask(stranger.addresses, b"x")[0] == Outcome.LOST
        assert one.ask({}, b"x")[0] == Outcome.LOST
        assert one.ask({"tcp": "127.0.0.1:1"}, b"x")[0] == Outcome.LOST
        # The sidecar stays usable.
        assert one.question(Question(What.ECHO, 5000, {}, b"hello")) == (Outcome.HERE, b"hello")
        assert one.answered_by[-1] == 0


def test_a_killed_peer_is_lost_and_its_successor_is_reached():
    with ExecutorEnd(answer) as one:
        other = ExecutorEnd(answer)
        assert one.ask(other.addresses, b"3") == (Outcome.HERE, pattern(3))
        other.kill()
        outcome, why = one.ask(other.addresses, b"3")
        assert (outcome, b"PENSTOCK_PEER_LOST" in why) == (Outcome.LOST, True)
        other.close()
        with ExecutorEnd(answer) as again:
            assert one.ask(again.addresses, b"3") == (Outcome.HERE, pattern(3))


def test_a_peer_that_is_killed_during_an_answer_is_lost():
    with ExecutorEnd(answer, transport="tcp") as one, ExecutorEnd(answer, transport="tcp") as other:
        killer = threading.Timer(0.3, other.kill)
        killer.start()
        outcomes = []
        with pytest.raises(GivenUpError):  # noqa: PT012, ends when the peer is killed
            while True:
                outcomes.append(one.ask(other.addresses, str(64 * MIB).encode())[0])
                if outcomes[-1] == Outcome.LOST:
                    # The peer was killed between two answers, so no answer was given up.
                    raise GivenUpError
        killer.join()
        assert set(outcomes) <= {Outcome.HERE, Outcome.LOST}
        assert one.ask(other.addresses, b"3")[0] == Outcome.LOST
        assert one.question(Question(What.ECHO, 5000, {}, b"hello")) == (Outcome.HERE, b"hello")
        assert one.answered_by[-1] == 0


def test_an_executor_that_gives_up_is_refused_and_a_slow_one_is_late():
    gate = threading.Event()

    def give(payload):
        if payload == b"give up":
            raise GivenUpError
        if payload == b"wait":
            gate.wait(20)
        return payload

    with ExecutorEnd() as one, ExecutorEnd(give, channels=1) as other:
        assert one.ask(other.addresses, b"give up") == (Outcome.REFUSED, b"the executor gave up")
        outcome, why = one.ask(other.addresses, b"wait", seconds=0.3)
        assert outcome == Outcome.LOST
        assert b"PENSTOCK_PEER_LATE" in why
        gate.set()
        assert one.ask(other.addresses, b"next") == (Outcome.HERE, b"next")


def test_receive_buffers_are_sent_to_peers_on_the_same_host_only():
    with ExecutorEnd() as one, ExecutorEnd() as other, ExecutorEnd(transport="tcp") as plain:
        one.ask(other.addresses, b"x", token=7)
        process, descriptor, token = other.receive_buffers.pop()
        assert (process, token) == (one.announced["pid"], 7)
        assert Path(f"/proc/{process}/fd/{descriptor}").stat().st_size == MEMORY_BYTES + LANDING_BYTES
        one.ask(other.addresses, b"x")
        assert other.receive_buffers.pop() == (0, 0, 0)
        one.ask(plain.addresses, b"x", token=7)
        assert plain.receive_buffers.pop() == (0, 0, 0)


def test_a_channel_is_not_used_while_its_executor_fills_a_receive_buffer():
    done = threading.Event()

    def give(payload):
        return Landed(b"how much", done) if payload == b"much" else payload

    with ExecutorEnd() as one, ExecutorEnd(give, channels=1) as other:
        assert one.ask(other.addresses, b"much", token=7) == (Outcome.LANDS, b"how much")
        assert one.ask(other.addresses, b"next", seconds=0.5)[0] == Outcome.LOST
        done.set()
        assert one.ask(other.addresses, b"next") == (Outcome.HERE, b"next")


def test_a_peer_that_stops_during_a_question_is_no_longer_served(monkeypatch):
    monkeypatch.setattr(service, "IDLE_S", 0.2)
    stopped = threading.Event()

    def question():
        yield memoryview(bytes(slices.SLICE_BYTES))
        stopped.wait(60)
        raise TransportError("PENSTOCK_GIVEN_UP", "the test has ended")

    def ask():
        with pytest.raises(TransportError):
            asking.send_parts(2 * slices.SLICE_BYTES, question(), soon(60))

    listener = Tcp(SECRET).listen()
    accepted = queue.SimpleQueue()
    accepting = threading.Thread(target=lambda: accepted.put(listener.accept(soon())))
    accepting.start()
    asking = Tcp(SECRET).connect(listener.address, soon())
    served = accepted.get(timeout=10)
    server = threading.Thread(target=TransferService(Peers(Offers({}, {}))).serve, args=(served, "tcp"), daemon=True)
    server.start()
    # An idle peer is waited for again.
    server.join(1.0)
    assert server.is_alive()
    asker = threading.Thread(target=ask)
    asker.start()
    server.join(10)
    assert not server.is_alive()
    assert not served.usable
    stopped.set()
    asker.join(10)
    accepting.join(10)
    asking.close()
    listener.close()


def left_behind(folder):
    return [path for path in (folder,) if path.exists()] + list(Path("/dev/shm").glob("penstock*"))  # noqa: S108


@pytest.mark.parametrize("death", ["the executor's end", "kill", "both"])
def test_a_sidecar_leaves_nothing_behind_however_it_ends(death):
    end = ExecutorEnd()
    process = end.process
    # Already true while the channels are open: files without names cannot be left behind.
    assert left_behind(end.folder) == []
    if death == "the executor's end":
        process.stdin.close()
        assert process.wait(20) == 0
    else:
        process.kill()
        process.wait(20)
    if death == "both":
        del end.asking
    assert left_behind(end.folder) == []
    for connection in end.sockets:
        connection.close()
    process.stdout.close()
    process.stderr.close()


def test_a_sidecar_ends_with_an_executor_that_dies_before_its_channels_open(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o700)
    process = subprocess.Popen(
        [sys.executable, "-m", "penstock.sidecars.transfer", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    process.stdin.write(json.dumps(start()) + "\n")
    process.stdin.flush()
    assert process.stdout.readline().startswith("ready ")
    process.stdin.close()
    assert process.wait(20) == 0
    process.stdout.close()
    assert not folder.exists()


def start(**other):
    return {
        "token": "0" * 64,
        "secret": SECRET.hex(),
        "host": "127.0.0.1",
        "transport": "auto",
        "encrypted": False,
        "channels": 1,
    } | other


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{}",
        "[]",
        json.dumps(start(token="short")),  # noqa: S106
        json.dumps(start(channels=0)),
        json.dumps(start(channels=65)),
        json.dumps(start(transport="pigeon")),
        json.dumps(start(secret="none")),  # noqa: S106
    ],
)
def test_an_invalid_start_line_is_refused(line, tmp_path):
    with pytest.raises((ValueError, KeyError, TypeError)):
        read_start(line)
    done = subprocess.run(
        [sys.executable, "-m", "penstock.sidecars.transfer", str(tmp_path)],
        input=line,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "only an executor starts this process" in done.stderr


def test_a_wrong_token_or_an_invalid_offer_gets_no_channel(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "penstock.sidecars.transfer", str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    process.stdin.write(json.dumps(start()) + "\n")
    process.stdin.flush()
    process.stdout.readline()
    name = tmp_path / "executor.sock"
    assert name.stat().st_mode & 0o777 == 0o600
    token = b"0" * 64
    wrong_size = encode(offer(b"G"))
    no_offer = encode(Record(Kind.TAKEN, 0))
    for data in (b"1" * 64 + b"A", token + b"X", b"0" * 10, token + b"A" + wrong_size, token + b"G" + no_offer):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(20)
            connection.connect(str(name))
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(32) == b""
    opened = []
    for role in (b"A", b"G"):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(str(name))
        connection.sendall(b"0" * 64 + role + encode(offer(role)))
        assert decode(connection.recv(RECORD.size)).kind == Kind.LANE
        opened.append(connection)
    assert process.stdout.readline() == "open\n"
    # An invalid record ends the sidecar, because later bytes could not be trusted.
    opened[0].sendall(os.urandom(RECORD.size))
    assert process.wait(20) == 1
    for connection in opened:
        connection.close()
    process.stdin.close()
    process.stdout.close()


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


def test_a_slow_reader_has_the_time_limit_for_each_slice(channel_ends):
    sidecar, executor, _ = channel_ends
    message = pattern(20 * slices.SLICE_BYTES)
    sender = threading.Thread(target=sidecar.send, args=(message, soon()))
    sender.start()
    size, parts = executor.receive(soon(), 0.2)
    taken = bytearray()
    for part in parts:
        if not taken:
            # Longer than the limit for a slice: the reader was busy with something else.
            time.sleep(0.4)
        taken += part
    sender.join()
    assert (size, bytes(taken)) == (len(message), bytes(message))


def test_a_message_can_be_given_up_halfway(channel_ends):
    sidecar, executor, _ = channel_ends
    receive_buffer = sidecar.begin(3 * slices.SLICE_BYTES)
    receive_buffer.part(slices.SLICE_BYTES, soon())[:] = pattern(slices.SLICE_BYTES)
    receive_buffer.landed(slices.SLICE_BYTES)
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
        Record(Kind.LANE, 0),
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


texts = st.dictionaries(st.text(max_size=8), st.text(max_size=20), max_size=3)


@given(st.sampled_from(What), st.integers(0, 2**32 - 1), texts, st.binary(max_size=100), st.integers(0, 2**64 - 1))
def test_questions_are_read_back(what, deadline_ms, peer, payload, token):
    question = Question(what, deadline_ms, peer, payload, token)
    assert read_question(write_question(question)) == question


@given(st.binary(max_size=60))
def test_random_bytes_are_not_a_question_or_a_valid_one(data):
    try:
        question = read_question(data)
    except BrokenChannelError:
        return
    assert question.what in list(What)


def test_common_transports_are_tried_best_first():
    offers = Offers({"local": None, "verbs": None, "tcp": None}, {}, {}, "here")
    assert list(offers.ways({HOST: "here", "tcp": "t", "local": "l"})) == [("local", "l"), ("tcp", "t")]
    assert list(offers.ways({HOST: "there", "tcp": "t", "local": "l", "mpi": "m"})) == [("tcp", "t")]
    assert list(offers.ways({})) == []


def test_an_idle_sidecar_uses_no_processor_time():
    with ExecutorEnd() as end:
        end.status()

        def ticks():
            fields = Path(f"/proc/{end.process.pid}/stat").read_text().rpartition(")")[2].split()
            return int(fields[11]) + int(fields[12])

        before = ticks()
        time.sleep(2)
        assert (ticks() - before) / os.sysconf("SC_CLK_TCK") < 0.1


def test_a_channel_whose_other_side_is_closed_fails(channel_ends):
    sidecar, _, connection = channel_ends
    connection.close()
    with pytest.raises(TransportError):
        sidecar.message(soon(), 1)
    with pytest.raises(TransportError):
        sidecar.send(b"x", soon())


class _Channel:
    """A channel that answers with one byte."""

    def __init__(self, opened):
        self.closed = False
        opened.append(self)

    def send(self, request, deadline):
        pass

    def receive_parts(self, deadline, begin):
        begin(1)

    def close(self):
        self.closed = True


class _Transport:
    def __init__(self):
        self.opened = []
        self.refused = set()
        self.tried = []

    def connect(self, address, deadline):
        self.tried.append(address)
        if address in self.refused:
            raise PeerLostError(f"nobody is at {address}")
        return _Channel(self.opened)


def test_connections_are_reused_and_bounded():
    transport = _Transport()
    peers = Peers(Offers({"tcp": transport}, {}))
    for _ in range(3):
        for number in range(MAX_IDLE + 5):
            peers.ask({"tcp": str(number)}, lambda transport: b"", soon(), lambda transport, size: None)
    assert sum(not channel.closed for channel in transport.opened) == MAX_IDLE
    before = len(transport.opened)
    peers.ask({"tcp": str(MAX_IDLE + 4)}, lambda transport: b"", soon(), lambda transport, size: None)
    assert len(transport.opened) == before
    assert peers.counts["tcp"].messages == 3 * (MAX_IDLE + 5) + 1


def test_an_unreachable_address_is_not_tried_again_for_a_while():
    transport = _Transport()
    transport.refused = {"gone"}
    peers = Peers(Offers({"tcp": transport}, {}))
    for _ in range(3):
        with pytest.raises(PeerLostError):
            peers.ask({"tcp": "gone"}, lambda transport: b"", soon(), lambda transport, size: None)
    assert transport.tried == ["gone"]
    peers.ask({"tcp": "there"}, lambda transport: b"", soon(), lambda transport, size: None)
    assert peers.counts["tcp"].failures == 1
