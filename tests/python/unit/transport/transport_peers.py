"""The transports that the conformance tests run with, and a peer in a process that can be killed."""

import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field

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


class Peer:
    """Connects to a listener from another process, and then performs one action: see `main`."""

    def __init__(self, name: str, address: str, action: str, *, secret: bytes = SECRET) -> None:
        command = [sys.executable, __file__, name, address, action, secret.decode()]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def read_line(self) -> str:
        return self.process.stdout.readline().strip()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(20)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def end(self) -> int:
        self.process.stdout.close()
        return self.process.wait(20)

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(20)
        self.process.stdin.close()
        self.process.stdout.close()


def main(name: str, address: str, action: str, secret: str) -> None:
    channel = transport(name, secret.encode()).connect(address, soon())
    print("connected", flush=True)
    if action == "echo":
        try:
            while True:
                channel.send(channel.receive(soon()), soon())
        except TransportError as error:
            print(error.error_class, flush=True)
    elif action == "flood":
        message = os.urandom(64 << 20)
        while True:
            channel.send(message, soon())
    elif action == "wait":
        # Until this process is killed, or the test's process has ended.
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
