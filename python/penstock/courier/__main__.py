"""`python -m penstock.courier FOLDER`: what an executor starts. See `docs/PROTOCOL.md`, section 12."""

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
from penstock.courier.courier import Courier, LaneFailedError
from penstock.courier.lane import Lane, LaneMemory
from penstock.courier.offers import AUTO, BEST_FIRST, Offers, offer
from penstock.courier.peers import Peers
from penstock.courier.records import RECORD, BrokenLaneError, Record, decode, encode
from penstock.sidecar.private_socket import listen, remove
from penstock.transport import sockets
from penstock.transport.channel import Listener
from penstock.transport.deadline import Deadline
from penstock.transport.errors import PeerTimeoutError, TransportError

SOCKET = "executor.sock"
TOKEN_CHARS = 64
ASK, GIVE = b"A", b"G"
"""What a lane is for: the executor asks, or is asked."""
MOST_LANES = 64
OPEN_S = 30.0
"""In which the executor opens its lanes."""
IDLE_S = 3600.0


@dataclass(frozen=True)
class Start:
    """What an executor tells its sidecar first.

    Parameters
    ----------
    token
        That lanes begin with.
    secret
        Of the application.
    host
        Address of this host that peers use.
    transport
        That is wanted.
    encrypted
        Whether what leaves this host must be.
    lanes
        Of each kind.
    authenticated
        Whether nobody may reach it who does not know the secret.
    """

    token: str = field(repr=False)
    secret: bytes = field(repr=False)
    host: str
    transport: str
    encrypted: bool
    lanes: int
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
        int(told["lanes"]),
        bool(told.get("authenticated", False)),
    )
    if len(start.token) != TOKEN_CHARS or not start.secret or not 0 < start.lanes <= MOST_LANES:
        raise ValueError("token, secret or lanes")
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
        with listen(name, 2 * MOST_LANES) as server:
            offers = offer(
                start.secret,
                start.host,
                start.transport,
                encrypted=start.encrypted,
                authenticated=start.authenticated,
            )
            courier = Courier(Peers(offers))
            print(f"ready {json.dumps(_introduction(offers))}", flush=True)
            lanes = _open(server, start)
        # From here on nothing of this process has a name, so that nothing is left however it ends.
    except (TransportError, OSError) as error:
        print(f"penstock: there can be no sidecar here: {error}", file=sys.stderr)
        return 1
    finally:
        remove(name)
    for role, lane in lanes:
        if role == GIVE:
            courier.add_giver(lane)
        else:
            _thread("a lane", courier.answer, lane)
    for transport, listener in offers.listeners.items():
        _thread(f"listens by {transport}", _accept, listener, courier, transport)
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


def _open(server: socket.socket, start: Start) -> list[tuple[bytes, Lane]]:
    """Take the lanes of the executor: as many of each kind as it said."""
    wanted = {ASK: start.lanes, GIVE: start.lanes}
    lanes = []
    deadline = Deadline.after(OPEN_S)
    while any(wanted.values()):
        server.settimeout(deadline.left_s("the executor to open its lanes"))
        connection, _ = server.accept()
        connection.settimeout(deadline.left_s("a lane"))
        said = b""
        while len(said) <= TOKEN_CHARS and (part := connection.recv(TOKEN_CHARS + 1 - len(said))):
            said += part
        role = said[TOKEN_CHARS:]
        if not hmac.compare_digest(said[:TOKEN_CHARS], start.token.encode()) or not wanted.get(role):
            connection.close()
            continue
        try:
            memory = LaneMemory.adopted(_offer(connection, deadline), has_landing=role == ASK)
        except (TransportError, BrokenLaneError):
            connection.close()
            continue
        wanted[role] -= 1
        connection.sendall(encode(memory.record))
        lanes.append((role, Lane(connection, memory.bytes, descriptor=memory.descriptor)))
    return lanes


def _offer(connection: socket.socket, deadline: Deadline) -> Record:
    record = memoryview(bytearray(RECORD.size))
    sockets.read(connection, record, deadline, "the offer of a lane's memory")
    return decode(bytes(record))


def _accept(listener: Listener, courier: Courier, transport: str) -> None:
    while True:
        try:
            channel = listener.accept(Deadline.after(IDLE_S))
        except PeerTimeoutError:
            continue
        except TransportError:
            return
        try:
            _thread(f"serves {channel.peer}", courier.serve, channel, transport)
        except RuntimeError:
            # No more threads: the peer finds the shard elsewhere.
            channel.close()


def _thread(name: str, work: Callable[..., None], *arguments: Any) -> None:
    def run() -> None:
        try:
            work(*arguments)
        except LaneFailedError as error:
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
        print("penstock: usage: python -m penstock.courier FOLDER", file=sys.stderr)
        sys.exit(2)
    sys.exit(main(Path(sys.argv[1])))
