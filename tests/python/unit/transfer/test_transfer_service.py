"""How a sidecar reads questions, serves a peer, and connects to peers."""

import queue
import threading

import pytest
from executor_end import soon
from hypothesis import given
from hypothesis import strategies as st
from penstock.sidecars.transfer import service
from penstock.sidecars.transfer.channel_records import BrokenChannelError
from penstock.sidecars.transfer.offers import HOST, Offers
from penstock.sidecars.transfer.peers import MAX_IDLE, Peers
from penstock.sidecars.transfer.service import Question, TransferService, What, read_question, write_question
from penstock.transport import slices
from penstock.transport.errors import PeerLostError, TransportError
from penstock.transport.tcp import Tcp
from sidecar_process import SECRET


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
    receive, waits = served.receive, threading.Semaphore(0)

    def counted(*arguments, **limits):
        waits.release()
        return receive(*arguments, **limits)

    monkeypatch.setattr(served, "receive", counted)
    server = threading.Thread(target=TransferService(Peers(Offers({}, {}))).serve, args=(served, "tcp"), daemon=True)
    server.start()
    # An idle peer is waited for again and again.
    for _ in range(3):
        assert waits.acquire(timeout=10)
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
    assert list(offers.routes({HOST: "here", "tcp": "t", "local": "l"})) == [("local", "l"), ("tcp", "t")]
    assert list(offers.routes({HOST: "there", "tcp": "t", "local": "l", "mpi": "m"})) == [("tcp", "t")]
    assert list(offers.routes({})) == []


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
