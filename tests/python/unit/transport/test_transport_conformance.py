"""Requirements for every transport, tested with a peer in another process."""

import os
import socket
import threading
from pathlib import Path

import numpy as np
import pytest
from eventually import eventually
from penstock.transport import slices
from penstock.transport.channel import MAX_BYTES
from penstock.transport.errors import PeerBrokenError, PeerLostError, PeerRefusedError, PeerTimeoutError, TransportError
from transport_peers import SLOW, TRANSPORTS, ObservedDeadline, Peer, soon, transport


@pytest.fixture(params=TRANSPORTS)
def name(request):
    return request.param


@pytest.fixture
def listener(name):
    made = transport(name).listen()
    yield made
    made.close()


def connected(name, listener, action):
    peer = Peer(name, listener.address, action)
    channel = listener.accept(soon())
    assert peer.read_line() == "connected"
    return peer, channel


def again(call):
    while True:
        call()


def names(folder):
    return {entry.name for entry in Path(folder).iterdir()}


SIZES = (0, 1, slices.SLICE_BYTES - 1, slices.SLICE_BYTES, slices.SLICE_BYTES + 1, 10 << 20)


def test_messages_of_any_size_are_echoed_unchanged_and_in_order(name, listener):
    peer, channel = connected(name, listener, "echo")
    with peer, channel:
        for size in SIZES:
            message = os.urandom(size)
            channel.send(message, soon())
            assert channel.receive(soon()) == message
        messages = [os.urandom(size % 3000) for size in range(0, 200_000, 997)]
        sender = threading.Thread(target=lambda: [channel.send(m, soon()) for m in messages])
        sender.start()
        assert [bytes(channel.receive(soon())) for _ in messages] == messages
        sender.join()


@pytest.mark.slow
def test_the_largest_message_is_received_in_place_and_a_larger_one_is_not_sent(name, listener):
    size = MAX_BYTES if name not in SLOW else MAX_BYTES >> 4
    block = os.urandom(1 << 20)
    message = memoryview(bytearray(block * (size >> 20)))
    target = memoryview(bytearray(size))
    peer, channel = connected(name, listener, "echo")
    with peer, channel:
        sender = threading.Thread(target=lambda: channel.send(message, soon(120)))
        sender.start()
        assert channel.receive(soon(120), into=lambda n: target[:n]).obj is target.obj
        sender.join()
        # Memory views compare element by element, which would take seconds.
        assert np.array_equal(np.asarray(target), np.asarray(message))
        with pytest.raises(ValueError, match=r"at most \d+ are allowed"):
            channel.send(bytearray(MAX_BYTES + 1), soon())
        channel.send(b"still here", soon())
        assert channel.receive(soon()) == b"still here"


def test_many_peers_are_served_concurrently(name, listener):
    peers = [Peer(name, listener.address, "echo") for _ in range(8)]
    channels = [listener.accept(soon()) for _ in peers]
    for i, channel in enumerate(channels):
        channel.send(bytes([i]) * 100_000, soon())
    for i, channel in reversed(list(enumerate(channels))):
        assert channel.receive(soon()) == bytes([i]) * 100_000
        channel.close()
    for peer in peers:
        with peer:
            assert peer.read_line() == "connected"
            assert peer.read_line() == "PENSTOCK_PEER_LOST"
            assert peer.end() == 0


def test_a_silent_peer_times_out_and_can_be_waited_for_again(name, listener):
    peer, channel = connected(name, listener, "echo")
    with peer, channel:
        with pytest.raises(PeerTimeoutError):
            channel.receive(soon(0.2))
        assert channel.usable
        channel.send(b"go on", soon())
        assert channel.receive(soon()) == b"go on"
    assert not channel.usable


def test_a_sender_waits_for_a_peer_that_does_not_read(name, listener):
    peer, channel = connected(name, listener, "wait")
    with peer, channel:
        sent = 0

        def send_on():
            nonlocal sent
            while sent < 1000:
                channel.send(bytes(1 << 20), soon(0.5))
                sent += 1

        with pytest.raises(PeerTimeoutError):
            send_on()
        # Data in flight is bounded by the ring, or by the buffers of the kernel.
        assert sent <= 64
        with pytest.raises(PeerTimeoutError):
            channel.send(b"", soon())


@pytest.mark.parametrize("action", ["echo", "flood", "wait"])
def test_a_peer_that_is_killed_is_lost(name, listener, action):
    peer, channel = connected(name, listener, action)
    with peer, channel:
        if action == "flood":
            channel.receive(soon())
        killer = threading.Timer(0.2, peer.kill)
        killer.start()
        with pytest.raises(PeerLostError):
            again(lambda: channel.receive(soon()))
        killer.join()
        with pytest.raises(PeerLostError):
            again(lambda: channel.send(bytes(1 << 20), soon()))


def test_a_peer_that_stops_during_a_message_times_out(name, listener):
    peer, channel = connected(name, listener, "flood")
    with peer, channel:
        channel.receive(soon())
        peer.stop()
        with pytest.raises(PeerTimeoutError):
            again(lambda: channel.receive(soon(0.5)))
        peer.kill()


def test_closing_a_channel_wakes_its_waiting_receiver(name, listener):
    peer, channel = connected(name, listener, "wait")
    with peer:
        failed, deadline = [], ObservedDeadline(soon().at_s)

        def receive():
            try:
                channel.receive(deadline)
            except TransportError as error:
                failed.append(error)

        waiting = threading.Thread(target=receive)
        waiting.start()
        assert deadline.asked.wait(20)
        channel.close()
        channel.close()
        waiting.join(5)
        assert [type(error) for error in failed] == [PeerLostError]


def test_a_peer_of_another_application_is_refused_and_others_are_not(name, listener):
    with pytest.raises((PeerRefusedError, PeerLostError)):
        transport(name, b"another secret").connect(listener.address, soon())
    peer, channel = connected(name, listener, "echo")
    with peer, channel:
        channel.send(b"hello", soon())
        assert channel.receive(soon()) == b"hello"


def raw(listener):
    if listener.address.startswith("@"):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect("\0" + listener.address[1:])
        return connection
    host, port = listener.address.split(":")
    return socket.create_connection((host, int(port)))


@pytest.mark.parametrize("garbage", [b"", b"GET / HTTP/1.1\r\n\r\n" * 100, bytes(1000), b"PSTT\xff" + bytes(35)])
def test_a_connection_that_sends_garbage_is_closed(name, listener, garbage):
    with raw(listener) as connection:
        connection.sendall(garbage)
        peer, channel = connected(name, listener, "echo")
        with peer, channel:
            channel.send(b"hello", soon())
            assert channel.receive(soon()) == b"hello"
        connection.settimeout(20)
        if garbage:
            with pytest.raises((ConnectionError, StopIteration)):
                next(iter(lambda: connection.recv(100), b""))


def test_connecting_to_a_closed_listener_fails(name, listener):
    address = listener.address
    listener.close()
    with pytest.raises(PeerLostError):
        transport(name).connect(address, soon(2))
    with pytest.raises(PeerLostError):
        listener.accept(soon(2))
    again = transport(name).listen()
    try:
        peer, channel = connected(name, again, "echo")
        with peer, channel:
            channel.send(b"hello", soon())
            assert channel.receive(soon()) == b"hello"
    finally:
        again.close()


def test_no_descriptors_or_shared_memory_are_left(name):
    files, shared = names("/proc/self/fd"), names("/dev/shm")  # noqa: S108
    listener = transport(name).listen()
    for kills in (False, True):
        peer, channel = connected(name, listener, "echo")
        with peer:
            channel.send(bytes(1 << 20), soon())
            if kills:
                peer.kill()
            channel.close()
    listener.close()
    del channel
    # The listener's thread closes its socket after `close` has returned.
    eventually(lambda: names("/dev/shm") == shared, timeout_s=20, what="no shared memory is left")  # noqa: S108
    eventually(lambda: len(names("/proc/self/fd")) <= len(files), timeout_s=20, what="no descriptors are left")


def test_unexpected_slices_are_refused():
    data = memoryview(b"abc")
    header = slices.encode(7, 3, data)
    slices.decode(header, 7).check(data)
    with pytest.raises(PeerBrokenError, match="expected slice 8, found 7"):
        slices.decode(header, 8)
    with pytest.raises(PeerBrokenError, match="checksum"):
        slices.decode(header, 7).check(memoryview(b"abd"))
    with pytest.raises(PeerBrokenError, match="not the beginning of a slice"):
        slices.decode(b"x" + header[1:], 7)
