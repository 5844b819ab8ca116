"""Questions between transfer sidecars, which are real processes; the executors' side is in this process."""

import threading
from pathlib import Path

import pytest
from executor_end import DirectAnswer, ExecutorEnd, RefuseError
from penstock.sidecars.transfer.executor_channel import (
    MEMORY_BYTES,
    RECEIVE_BUFFER_BYTES,
    GivenUpError,
)
from penstock.sidecars.transfer.offers import HOST
from penstock.sidecars.transfer.service import (
    Outcome,
    Question,
    What,
)
from penstock.transport import slices
from penstock.transport.registry import FALLBACK, TRANSPORTS

MIB = 1 << 20


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
        assert Path(f"/proc/{process}/fd/{descriptor}").stat().st_size == MEMORY_BYTES + RECEIVE_BUFFER_BYTES
        one.ask(other.addresses, b"x")
        assert other.receive_buffers.pop() == (0, 0, 0)
        one.ask(plain.addresses, b"x", token=7)
        assert plain.receive_buffers.pop() == (0, 0, 0)


def test_a_channel_is_not_used_while_its_executor_fills_a_receive_buffer():
    done = threading.Event()

    def give(payload):
        return DirectAnswer(b"how much", done) if payload == b"much" else payload

    with ExecutorEnd() as one, ExecutorEnd(give, channels=1) as other:
        assert one.ask(other.addresses, b"much", token=7) == (Outcome.DIRECT, b"how much")
        assert one.ask(other.addresses, b"next", seconds=0.5)[0] == Outcome.LOST
        done.set()
        assert one.ask(other.addresses, b"next") == (Outcome.HERE, b"next")
