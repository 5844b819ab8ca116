"""Strangers that reach a port without knowing the secret, and peers whose hosts vanish."""

import contextlib
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from eventually import eventually
from penstock.sidecars.transfer.__main__ import Start
from penstock.sidecars.transfer.offers import Offers, offer
from penstock.sidecars.transfer.peers import Peers
from penstock.sidecars.transfer.service import ENVELOPE, MAX_QUESTION_BYTES, TransferService, _of_transport
from penstock.transport import listening, slices, sockets
from penstock.transport.errors import PeerBrokenError, PeerLostError, TransportError
from penstock.transport.handshake import ANSWER_BYTES, HELLO_BYTES, PROOF_BYTES
from penstock.transport.local import Local
from penstock.transport.mpi import Mpi
from penstock.transport.mpi.library import mpi
from penstock.transport.tcp import Tcp
from transport_peers import SECRET, TRANSPORTS, Peer, soon


class Wire:
    """Carries bytes between a peer and a listener, and records what each sends."""

    def __init__(self, address: str) -> None:
        self._to = address
        self._server, self.address = sockets.bind("127.0.0.1")
        self.recorded = {"peer": bytearray(), "listener": bytearray()}
        threading.Thread(target=self._carry, daemon=True).start()

    def _carry(self) -> None:
        near, _ = self._server.accept()
        far = sockets.dial(self._to, soon())
        for name, out, back in (("peer", near, far), ("listener", far, near)):
            threading.Thread(target=self._copy, args=(name, out, back), daemon=True).start()

    def _copy(self, name: str, out: socket.socket, back: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := out.recv(1 << 16):
                self.recorded[name] += data
                back.sendall(data)

    def close(self) -> None:
        self._server.close()


def test_headers_of_encrypted_data_reveal_nothing_about_the_data() -> None:
    transport = Tcp(SECRET, encrypted=True)
    listener = transport.listen()
    wire = Wire(listener.address)
    try:
        with transport.connect(wire.address, soon()) as near, listener.accept(soon()) as far:
            for data in (b"balance=000731;name=alice", b"balance=000732;name=alice"):
                near.send(data, soon())
                assert far.receive(soon()) == data
                far.send(data, soon())
                assert near.receive(soon()) == data
    finally:
        wire.close()
        listener.close()
    handshake = {"peer": HELLO_BYTES + PROOF_BYTES, "listener": ANSWER_BYTES + PROOF_BYTES}
    for name, recorded in wire.recorded.items():
        sent = bytes(recorded[handshake[name] :])
        length = slices.HEADER.size + 25 + 16
        assert len(sent) == 2 * length
        first, second = (sent[at : at + slices.HEADER.size] for at in (0, length))
        # Only the number of the slice differs.
        assert first[:8] + first[16:] == second[:8] + second[16:]
        assert b"alice" not in sent


def test_a_sealed_slice_with_a_checksum_is_refused() -> None:
    data = memoryview(b"abc")
    slices.decode(slices.encode(0, 3, data, sealed=True), 0, sealed=True).check(memoryview(b"xyz"))
    with pytest.raises(PeerBrokenError, match="is sealed, but has a checksum"):
        slices.decode(slices.encode(0, 3, data), 0, sealed=True)


@pytest.fixture(params=[Tcp, Local])
def transport(request: pytest.FixtureRequest) -> Tcp | Local:
    made: Tcp | Local = request.param(SECRET)
    return made


def stranger(address: str) -> socket.socket:
    if address.startswith("@"):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect("\0" + address[1:])
        return connection
    return sockets.dial(address, soon())


def test_silent_strangers_do_not_keep_peers_out(transport: Tcp | Local) -> None:
    listener = transport.listen()
    with contextlib.ExitStack() as strangers:
        for i in range(3 * listening.MAX_AT_ONCE):
            strangers.enter_context(stranger(listener.address))
            # Two seconds is how long a peer waits before it tries another transport.
            if i % listening.MAX_AT_ONCE == 0:
                with transport.connect(listener.address, soon(2)) as near, listener.accept(soon(2)) as far:
                    near.send(b"hello", soon())
                    assert far.receive(soon()) == b"hello"
        with transport.connect(listener.address, soon(2)), listener.accept(soon(2)):
            pass
    listener.close()


def test_a_silent_connection_is_closed_within_seconds() -> None:
    listener = Tcp(SECRET).listen()
    with stranger(listener.address) as connection:
        connection.settimeout(sockets.HELLO_S * 10)
        assert connection.recv(1) == b""
    listener.close()


class Threads:
    """Makes the start of threads fail while `full` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.refused = 0
        self.full = False
        start = threading.Thread.start

        def starting(thread: threading.Thread) -> None:
            if self.full and thread.name != "pytest":
                self.refused += 1
                raise RuntimeError("can't start new thread")
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", starting)


def test_a_listener_survives_a_lack_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = Threads(monkeypatch)
    transport = Tcp(SECRET)
    listener = transport.listen()
    threads.full = True
    for _ in range(2 * listening.MAX_AT_ONCE):
        with stranger(listener.address) as connection:
            connection.settimeout(20)
            assert connection.recv(1) == b""
    assert threads.refused >= 2 * listening.MAX_AT_ONCE
    threads.full = False
    with transport.connect(listener.address, soon()), listener.accept(soon()):
        pass
    listener.close()


def test_authenticated_peers_that_are_not_accepted_are_bounded(transport: Tcp | Local) -> None:
    listener = transport.listen()
    with contextlib.ExitStack() as peers:
        for _ in range(listening.MAX_AT_ONCE + 8):
            peers.enter_context(transport.connect(listener.address, soon()))
        accepted = 0
        with contextlib.suppress(TransportError):
            while True:
                listener.accept(soon(0.5)).close()
                accepted += 1
        # Some of the last peers may have authenticated after the first had been accepted.
        assert 0 < accepted < listening.MAX_AT_ONCE + 8
    listener.close()


@pytest.fixture
def served() -> Iterator[tuple[Tcp, str]]:
    """Yield the transport and the address of a service that serves one peer."""
    transport = Tcp(SECRET)
    listener = transport.listen()
    service = TransferService(Peers(Offers({}, {})))

    def serve() -> None:
        service.serve(listener.accept(soon()), "tcp")

    threading.Thread(target=serve, daemon=True).start()
    yield transport, listener.address
    listener.close()


def test_a_question_that_is_too_long_ends_the_connection_before_it_is_read(served: tuple[Tcp, str]) -> None:
    transport, address = served
    with transport.connect(address, soon()) as channel:
        with contextlib.suppress(PeerLostError):
            channel.send(bytes(ENVELOPE.size + MAX_QUESTION_BYTES + 1), soon())
        with pytest.raises(PeerLostError):
            channel.receive(soon())


def test_vanished_hosts_are_detected_within_a_minute() -> None:
    server, address = sockets.bind("127.0.0.1")
    with server, sockets.dial(address, soon()) as connection:
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 0
        sockets.prepare(connection)
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        idle, interval, count = (connection.getsockopt(socket.IPPROTO_TCP, option) for option, _ in sockets.KEEP_ALIVE)
        assert idle + interval * count <= 60


def test_receive_buffers_are_accepted_from_peers_on_the_same_host_only() -> None:
    question = ENVELOPE.pack(1, 0, 0, 4711, 9, 30_000, 77) + b"which shards?"
    assert _of_transport(question, "local") == question
    assert _of_transport(question, "tcp") == ENVELOPE.pack(1, 0, 0, 0, 0, 30_000, 0) + b"which shards?"
    assert _of_transport(b"short", "tcp") == b"short"


def test_encryption_without_its_package_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(TransportError, match=r"penstock\[encryption\]") as refused:
        offer(SECRET, "127.0.0.1", "auto", encrypted=True)
    assert refused.value.error_class == "PENSTOCK_NO_ENCRYPTION"


def test_mpi_is_not_offered_with_authentication() -> None:
    offers = offer(SECRET, "127.0.0.1", "mpi", encrypted=False, authenticated=True)
    for listener in offers.listeners.values():
        listener.close()
    assert set(offers.listeners) == {"tcp"}
    assert (
        offers.missing["mpi"]
        == "spark.authenticate is set, but the port of an MPI library accepts packets from anybody"
    )


def test_secrets_are_not_part_of_representations() -> None:
    start = Start("0" * 64, b"hidden", "127.0.0.1", "auto", encrypted=False, channels=4)
    assert "hidden" not in repr((start, Tcp(b"hidden"), Local(b"hidden")))
    assert "0" * 64 not in repr(start)


ROGUE = """
import sys
from penstock.transport.mpi.library import mpi
print("here", flush=True)
mpi().COMM_SELF.Connect(sys.argv[1])
print("is connected", flush=True)
sys.stdin.read()
"""
"""Connects to a port of MPI, and lives until its standard input is closed."""
ESTABLISHED = "01"


def is_reached(port: str) -> bool:
    """Whether a TCP connection to a port of MPI exists, such as ``tag#0$description#here$port#42665$``."""
    number = int(port.partition("$port#")[2].partition("$")[0])
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return any(fields[2].endswith(f":{number:04X}") and fields[3] == ESTABLISHED for fields in map(str.split, lines))


@pytest.mark.skipif("mpi" not in TRANSPORTS, reason="this run leaves MPI out")
def test_a_stranger_at_the_port_of_mpi_does_not_take_a_peers_place(monkeypatch: pytest.MonkeyPatch) -> None:
    ports = []
    library = mpi()
    opened = library.Open_port
    monkeypatch.setattr(library, "Open_port", lambda: ports.append(opened()) or ports[-1])
    listener = Mpi(SECRET).listen()
    command = [sys.executable, "-c", ROGUE, *ports]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as rogue,
        contextlib.closing(listener),
    ):
        try:
            assert rogue.stdout is not None
            assert rogue.stdout.readline().strip() == "here"
            # The stranger gets into the queue of the library before the peer.
            eventually(lambda: is_reached(*ports), timeout_s=20, what="the stranger is connected to the port of MPI")
            with Peer("mpi", listener.address, "echo") as peer, listener.accept(soon()) as channel:
                assert peer.read_line() == "connected"
                channel.send(b"hello", soon())
                assert channel.receive(soon()) == b"hello"
            assert rogue.stdout.readline().strip() == "is connected"
        finally:
            rogue.kill()
