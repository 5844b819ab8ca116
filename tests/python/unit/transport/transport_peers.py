"""The transports that the conformance tests run with, and a peer in a process that can be killed."""

import multiprocessing
import os
import signal
import threading
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

from penstock.transport import listening
from penstock.transport.channel import Transport
from penstock.transport.deadline import Deadline
from penstock.transport.errors import TransportError
from penstock.transport.registry import TRANSPORTS as REGISTERED

SECRET = b"of one application"
ENCRYPTED = "-encrypted"
VARIANTS = {
    f"{name}{suffix}": made
    for name, made in REGISTERED.items()
    for suffix in ("", ENCRYPTED)
    if not suffix or made.encrypts
}
"""Every registered transport, without encryption and, if it can encrypt, with it."""
TRANSPORTS = tuple(
    os.environ["PENSTOCK_TEST_TRANSPORTS"].split()
    if "PENSTOCK_TEST_TRANSPORTS" in os.environ
    else (name for name, made in VARIANTS.items() if not made.needs_device)
)
PATIENCE = float(os.environ.get("PENSTOCK_TEST_PATIENCE", "1"))
"""Factor by which this machine is slower than usual. Time limits are multiplied by it."""
listening.HANDSHAKE_S *= PATIENCE
SLOW = {name for name, made in VARIANTS.items() if name.endswith(ENCRYPTED) or made.needs_device}
"""Transports for which a message of a gibibyte takes too long, because they encrypt, or their device is emulated."""


def transport(name: str, secret: bytes = SECRET) -> Transport:
    return VARIANTS[name].make(secret, "127.0.0.1", encrypted=name.endswith(ENCRYPTED))


def soon(seconds: float = 20.0) -> Deadline:
    return Deadline.after(seconds * PATIENCE)


@dataclass(frozen=True)
class ObservedDeadline(Deadline):
    """A deadline that sets `asked` when somebody is about to wait until it."""

    asked: threading.Event = field(default_factory=threading.Event)

    def left_s(self, waiting_for: str) -> float:
        self.asked.set()
        return super().left_s(waiting_for)


_processes = multiprocessing.get_context("forkserver")
# NumPy is imported once, by the server that forks the peers: it takes seconds where the processor is emulated.
_processes.set_forkserver_preload(["penstock.transport.registry"])


class Peer:
    """Connects to a listener from another process, and then performs one action: see `act`."""

    def __init__(self, name: str, address: str, action: str, *, secret: bytes = SECRET) -> None:
        self._lines, of_peer = _processes.Pipe()
        self.process = _processes.Process(target=act, args=(of_peer, name, address, action, secret), daemon=True)
        self.process.start()
        of_peer.close()

    def read_line(self) -> str:
        """Return the next line of the peer, or nothing if it has ended."""
        try:
            return self._lines.recv()
        except EOFError:
            return ""

    def kill(self) -> None:
        self.process.kill()
        self.process.join(20)

    def stop(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)

    def end(self) -> int | None:
        self._lines.close()
        self.process.join(20)
        return self.process.exitcode

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.process.close()
        self._lines.close()


def act(lines: Connection, name: str, address: str, action: str, secret: bytes) -> None:
    channel = transport(name, secret).connect(address, soon())
    lines.send("connected")
    if action == "echo":
        try:
            while True:
                channel.send(channel.receive(soon()), soon())
        except TransportError as error:
            lines.send(error.error_class)
    elif action == "flood":
        message = os.urandom(64 << 20)
        while True:
            channel.send(message, soon())
    elif action == "wait":
        # Until this process is killed, or the test's process has ended.
        lines.poll(None)
