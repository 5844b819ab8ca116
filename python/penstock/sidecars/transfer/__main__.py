"""`python -m penstock.sidecars.transfer FOLDER`: started by an executor. See `docs/PROTOCOL.md`, section 12."""

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
from penstock.sidecars.transfer.offers import AUTO, Offers, offer
from penstock.sidecars.transfer.peers import Peers
from penstock.sidecars.transfer.service import ExecutorChannelFailedError, TransferService
from penstock.transport import sockets
from penstock.transport.channel import Listener
from penstock.transport.deadline import Deadline
from penstock.transport.errors import PeerTimeoutError, TransportError
from penstock.transport.registry import TRANSPORTS

SOCKET = "executor.sock"
TOKEN_CHARS = 64
ASK, GIVE = b"A", b"G"
"""Role of an executor channel: the executor asks questions on it, or is asked."""
MAX_CHANNELS = 64
OPEN_S = 30.0
"""Time in which the executor must open its channels, in seconds."""
IDLE_S = 3600.0


@dataclass(frozen=True)
class Start:
    """First message of an executor to its sidecar.

    Parameters
    ----------
    token
        Token that each channel begins with.
    secret
        Secret of the application.
    host
        Address of this host that peers use.
    transport
        Name of the wanted transport, or ``auto``.
    encrypted
        Whether data that leave this host must be encrypted.
    channels
        Number of channels of each role.
    authenticated
        Whether only peers that know the secret may reach the sidecar.
    """

    token: str = field(repr=False)
    secret: bytes = field(repr=False)
    host: str
    transport: str
    encrypted: bool
    channels: int
    authenticated: bool = False


def read_start(line: str) -> Start:
    """Decode the first line of standard input.

    Raises
    ------
    ValueError
        The line is not a valid start message.
    """
    fields: Any = json.loads(line)
    start = Start(
        str(fields["token"]),
        bytes.fromhex(fields["secret"]),
        str(fields["host"]),
        str(fields["transport"]),
        bool(fields["encrypted"]),
        int(fields["channels"]),
        bool(fields.get("authenticated", False)),
    )
    if len(start.token) != TOKEN_CHARS or not start.secret or not 0 < start.channels <= MAX_CHANNELS:
        raise ValueError("token, secret or channels are invalid")
    if start.transport not in (AUTO, *TRANSPORTS):
        raise ValueError(f"transport is {start.transport}; allowed: {', '.join((AUTO, *TRANSPORTS))}")
    return start


def main(folder: Path) -> int:
    """Serve an executor until it ends, and return the exit status."""
    lines = _Lines(sys.stdin.fileno())
    try:
        start = read_start(lines.next())
    except (ValueError, KeyError, TypeError) as error:
        print(f"penstock: invalid start message ({error}): only an executor starts this process", file=sys.stderr)
        return 2
    name = folder / SOCKET
    _thread("waits for the executor's end", _end_with_executor, lines, name)
    try:
        # This comes before anything slow, because the executor waits for the socket.
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
        # From here on this process has no named files or sockets, so nothing remains in whatever way it ends.
    except (TransportError, OSError) as error:
        print(f"penstock: the transfer sidecar cannot start: {error}", file=sys.stderr)
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
    # The pipe closes when the executor ends, in whatever way.
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
    """Accept the channels of the executor: as many of each role as it announced."""
    wanted = {ASK: start.channels, GIVE: start.channels}
    channels = []
    deadline = Deadline.after(OPEN_S)
    while any(wanted.values()):
        server.settimeout(deadline.left_s("the executor to open its channels"))
        connection, _ = server.accept()
        connection.settimeout(deadline.left_s("an executor channel"))
        received = b""
        while len(received) <= TOKEN_CHARS and (part := connection.recv(TOKEN_CHARS + 1 - len(received))):
            received += part
        role = received[TOKEN_CHARS:]
        if not hmac.compare_digest(received[:TOKEN_CHARS], start.token.encode()) or not wanted.get(role):
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
            # No thread can be started. The peer gets the shard elsewhere.
            channel.close()


def _thread(name: str, work: Callable[..., None], *arguments: Any) -> None:
    def run() -> None:
        try:
            work(*arguments)
        except ExecutorChannelFailedError as error:
            # The executor gets missing shards elsewhere, and starts a new sidecar.
            print(f"penstock: {error}", file=sys.stderr, flush=True)
            os._exit(1)

    threading.Thread(target=run, name=name, daemon=True).start()


class _Lines:
    """Lines of a pipe, read without a lock that the interpreter would wait for at exit."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._unread = b""

    def next(self) -> str:
        """Wait for a line; empty at the end of the input."""
        while b"\n" not in self._unread:
            part = os.read(self._file, 1 << 16)
            if not part:
                return ""
            self._unread += part
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode() + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 2:  # noqa: PLR2004
        print("penstock: usage: python -m penstock.sidecars.transfer FOLDER", file=sys.stderr)
        sys.exit(2)
    sys.exit(main(Path(sys.argv[1])))
