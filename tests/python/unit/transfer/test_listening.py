"""Transfer sidecars listen only at the addresses that they announce, and not after they have ended."""

import contextlib
import os
import socket
import struct
from pathlib import Path

import pytest
from eventually import eventually
from executor_end import ExecutorEnd
from penstock.sidecars.transfer.offers import AUTO
from penstock.transport.registry import TRANSPORTS

LISTENS = "0A"
UNIX_LISTENS = 0x10000


def sockets_of(pid: int) -> set[str]:
    """Return the inode numbers of the sockets of a process."""
    found = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            kind, _, number = str(descriptor.readlink()).partition(":")
            if kind == "socket":
                found.add(number.strip("[]"))
    return found


def tcp_of(pid: int) -> set[tuple[str, int]]:
    """Return host and port of each listening TCP socket of a process."""
    own, found = sockets_of(pid), set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            host, _, port = fields[1].partition(":")
            if fields[3] == LISTENS and fields[9] in own:
                words = [struct.pack("=I", int(host[at : at + 8], 16)) for at in range(0, len(host), 8)]
                family = socket.AF_INET if len(words) == 1 else socket.AF_INET6
                found.add((socket.inet_ntop(family, b"".join(words)), int(port, 16)))
    return found


def unix_of(pid: int) -> set[str]:
    """Return the names of the listening Unix sockets of a process. Abstract names begin with ``@``."""
    own, found = sockets_of(pid), set()
    for line in Path(f"/proc/{pid}/net/unix").read_text().splitlines()[1:]:
        fields = line.split()
        if int(fields[3], 16) & UNIX_LISTENS and fields[6] in own:
            found.add("".join(fields[7:]))
    return found


def address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


WANTED = [
    (AUTO, False),
    *((name, False) for name, made in TRANSPORTS.items() if not made.needs_device),
    *((name, True) for name, made in TRANSPORTS.items() if made.encrypts),
]


@pytest.mark.parametrize(("transport", "encrypted"), WANTED)
def test_a_sidecar_listens_only_where_it_announces(transport: str, encrypted: bool) -> None:
    with ExecutorEnd(transport=transport, encrypted=encrypted) as executor:
        announced = {name: at for name, at in executor.addresses.items() if name != "host"}
        if transport == "mpi" and "mpi" not in announced:
            pytest.skip(executor.announced["missing"]["mpi"])
        pid = executor.process.pid
        listening = tcp_of(pid)
        unix = {at for at in announced.values() if at.startswith("@")}
        named = {address(at) for at in announced.values() if at not in unix}
        # An MPI library listens at all addresses: see SECURITY.md.
        surplus = listening - named
        assert named <= listening
        assert all(host == "127.0.0.1" for host, _ in named)
        admits_strangers = transport in TRANSPORTS and TRANSPORTS[transport].admits_strangers
        assert len(surplus) <= (1 if admits_strangers else 0), surplus
        assert unix_of(pid) == unix


def listeners_at(ports: set[tuple[str, int]], name: str) -> list[str]:
    with contextlib.ExitStack() as stack:
        reachable = []
        for host, port in ports:
            connection = stack.enter_context(socket.socket())
            if connection.connect_ex((host, port)) == 0:
                reachable.append(f"{host}:{port}")
        connection = stack.enter_context(socket.socket(socket.AF_UNIX))
        if connection.connect_ex("\0" + name.removeprefix("@")) == 0:
            reachable.append(name)
    return reachable


@pytest.mark.parametrize("death", ["the executor's end", "SIGKILL", "SIGTERM"])
def test_nothing_listens_after_a_sidecar_has_ended(death: str) -> None:
    executor = ExecutorEnd()
    pid, name = executor.process.pid, executor.addresses["local"]
    ports = tcp_of(pid)
    assert len(listeners_at(ports, name)) == len(ports) + 1
    if death == "SIGKILL":
        executor.kill()
    elif death == "SIGTERM":
        executor.process.terminate()
        executor.process.wait(20)
    executor.close()
    eventually(lambda: not listeners_at(ports, name), timeout_s=20, what="nothing listens")
    assert not Path(f"/proc/{pid}").exists()
    assert not executor.folder.exists()


def test_listeners_of_this_process_are_found() -> None:
    before = tcp_of(os.getpid())
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert tcp_of(os.getpid()) - before == {server.getsockname()}
    assert tcp_of(os.getpid()) == before
