"""`python -m penstock.sidecars.transfer FOLDER`: what an executor starts. See `docs/PROTOCOL.md`, section 12."""

from __future__ import annotations

import hmac
import json
import os
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock import __version__
from penstock.process.private_socket import listen, remove
from penstock.sidecars.transfer.channel_records import RECORD, BrokenChannelError, Record, decode, encode
from penstock.sidecars.transfer.executor_channel import ChannelMemory, ExecutorChannel
from penstock.sidecars.transfer.offers import AUTO, BEST_FIRST, Offers, offer
from penstock.sidecars.transfer.peers import Peers
from penstock.sidecars.transfer.service import ExecutorChannelFailedError, TransferService
from penstock.transport import sockets
from penstock.transport.channel import Listener
from penstock.transport.deadline import Deadline
from penstock.transport.errors import PeerTimeoutError, TransportError

SOCKET = "executor.sock"
TOKEN_CHARS = 64
ASK, GIVE = b"A", b"G"
"""What an executor channel is for: the executor asks, or is asked."""
MAX_CHANNELS = 64
OPEN_S = 30.0
"""In which the executor opens its channels."""
IDLE_S = 3600.0


@dataclass(frozen=True)
class Start:
    """What an executor tells its sidecar first.

    Parameters
    ----------
    token
        That channels begin with.
    secret
        Of the application.
    host
        Address of this host that peers use.
    transport
        That is wanted.
    encrypted
        Whether what leaves this host must be.
    channels
        Of each kind.
    authenticated
        Whether nobody may reach it who does not know the secret.
    """

    token: str = field(repr=False)
    secret: bytes = field(repr=False)
    host: str
    transport: str
    encrypted: bool
    channels: int
    authenticated: bool = False


def read_start(line: str) -> Start:
    """Read the first line of standard input.

    Raises
    ------
    ValueError
        It is none.
    """
    told: Any = json.loads(line)
    start = Start(
        str(told["token"]),
        bytes.fromhex(told["secret"]),
        str(told["host"]),
        str(told["transport"]),
        bool(told["encrypted"]),
        int(told["channels"]),
        bool(told.get("authenticated", False)),
    )
    if len(start.token) != TOKEN_CHARS or not start.secret or not 0 < start.channels <= MAX_CHANNELS:
        raise ValueError("token, secret or channels")
    if start.transport not in (AUTO, *BEST_FIRST):
        raise ValueError(f"transport is {start.transport}; allowed: {', '.join((AUTO, *BEST_FIRST))}")
    return start


def main(folder: Path) -> int:
    """Serve an executor until it ends; returns the exit status."""
    lines = _Lines(sys.stdin.fileno())
    try:
        start = read_start(lines.next())
    except (ValueError, KeyError, TypeError) as error:
        print(f"penstock: an executor starts this process, and tells it how ({error})", file=sys.stderr)
        return 2
    name = folder / SOCKET
    _thread("waits for the executor's end", _end_with_executor, lines, name)
    try:
        # Before anything that takes time: who starts this process waits for the name.
        with listen(name, 2 * MAX_CHANNELS) as server:
            offers = offer(
                start.secret,
                start.host,
                start.transport,
                encrypted=start.encrypted,
                authenticated=start.authenticated,
            )
            service = TransferService(Peers(offers))
            print(f"ready {json.dumps(_introduction(offers))}", flush=True)
            channels = _open(server, start)
        # From here on nothing of this process has a name, so that nothing is left however it ends.
    except (TransportError, OSError) as error:
        print(f"penstock: there can be no sidecar here: {error}", file=sys.stderr)
        return 1
    finally:
        remove(name)
    for role, executor_channel in channels:
        if role == GIVE:
            service.add_sender(executor_channel)
        else:
            _thread("an executor channel", service.answer, executor_channel)
    for transport, listener in offers.listeners.items():
        _thread(f"listens by {transport}", _accept, listener, service, transport)
    print("open", flush=True)
    threading.Event().wait()
    return 0


def _end_with_executor(lines: _Lines, name: Path) -> None:
    # The executor's end of the pipe closes with it, however it ends.
    while lines.next():
        pass
    remove(name)
    os._exit(0)


def _introduction(offers: Offers) -> dict[str, Any]:
    return {
        "penstock": __version__,
        "pid": os.getpid(),
        "addresses": dict(offers.addresses),
        "missing": dict(offers.missing),
    }


def _open(server: socket.socket, start: Start) -> list[tuple[bytes, ExecutorChannel]]:
    """Take the channels of the executor: as many of each kind as it said."""
    wanted = {ASK: start.channels, GIVE: start.channels}
    channels = []
    deadline = Deadline.after(OPEN_S)
    while any(wanted.values()):
        server.settimeout(deadline.left_s("the executor to open its channels"))
        connection, _ = server.accept()
        connection.settimeout(deadline.left_s("an executor channel"))
        said = b""
        while len(said) <= TOKEN_CHARS and (part := connection.recv(TOKEN_CHARS + 1 - len(said))):
            said += part
        role = said[TOKEN_CHARS:]
        if not hmac.compare_digest(said[:TOKEN_CHARS], start.token.encode()) or not wanted.get(role):
            connection.close()
            continue
        try:
            memory = ChannelMemory.adopted(_offer(connection, deadline), has_receive_buffer=role == ASK)
        except (TransportError, BrokenChannelError):
            connection.close()
            continue
        wanted[role] -= 1
        connection.sendall(encode(memory.record))
        channels.append((role, ExecutorChannel(connection, memory.bytes, descriptor=memory.descriptor)))
    return channels


def _offer(connection: socket.socket, deadline: Deadline) -> Record:
    record = memoryview(bytearray(RECORD.size))
    sockets.read(connection, record, deadline, "the offer of an executor channel's memory")
    return decode(bytes(record))


def _accept(listener: Listener, service: TransferService, transport: str) -> None:
    while True:
        try:
            channel = listener.accept(Deadline.after(IDLE_S))
        except PeerTimeoutError:
            continue
        except TransportError:
            return
        try:
            _thread(f"serves {channel.peer}", service.serve, channel, transport)
        except RuntimeError:
            # No more threads: the peer finds the shard elsewhere.
            channel.close()


def _thread(name: str, work: Callable[..., None], *arguments: Any) -> None:
    def run() -> None:
        try:
            work(*arguments)
        except ExecutorChannelFailedError as error:
            # Whatever the executor has not yet got it gets elsewhere; it starts a new sidecar.
            print(f"penstock: {error}", file=sys.stderr, flush=True)
            os._exit(1)

    threading.Thread(target=run, name=name, daemon=True).start()


class _Lines:
    """Lines of a pipe, read without a lock that the interpreter's end would wait for."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._read = b""

    def next(self) -> str:
        """Wait for a line; empty at the end."""
        while b"\n" not in self._read:
            part = os.read(self._file, 1 << 16)
            if not part:
                return ""
            self._read += part
        line, _, self._read = self._read.partition(b"\n")
        return line.decode() + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 2:  # noqa: PLR2004
        print("penstock: usage: python -m penstock.sidecars.transfer FOLDER", file=sys.stderr)
        sys.exit(2)
    sys.exit(main(Path(sys.argv[1])))
