"""A transfer sidecar on an unsuitable host or with unsuitable peers reports the problem and works if it can."""

import contextlib
import json
import os
import resource
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from executor_end import ExecutorEnd, offer
from penstock import __version__
from penstock.sidecars.transfer.channel_records import encode
from penstock.sidecars.transfer.offers import survey
from penstock.sidecars.transfer.service import Outcome
from penstock.transport import handshake
from penstock.transport.errors import PeerRefusedError
from sidecar_process import PATIENCE_S, SECRET, TOKEN, send_line, sidecar_process, start_line


@contextlib.contextmanager
def limited(process, kind, limit):
    """Lower a resource limit of a process for a while."""
    before = resource.prlimit(process.pid, kind)
    resource.prlimit(process.pid, kind, (limit, before[1]))
    try:
        yield
    finally:
        resource.prlimit(process.pid, kind, before)


def test_tcp_is_used_if_shared_memory_cannot_be_allocated():
    with ExecutorEnd() as one, ExecutorEnd() as two:
        with limited(one.process, resource.RLIMIT_FSIZE, 1 << 20):
            assert one.ask(two.addresses, b"x") == (Outcome.HERE, b"x")
        status = one.status()
        assert (status["local"]["failures"], status["tcp"]["messages"]) == (1, 1)
        assert "File too large" in status["local"]["last_failure"]


@pytest.mark.parametrize("transport", ["local", "tcp"])
def test_a_lack_of_descriptors_is_reported_and_the_channel_stays_usable(transport):
    with ExecutorEnd(transport=transport) as one, ExecutorEnd() as two:
        used = len(list(Path(f"/proc/{one.process.pid}/fd").iterdir()))
        with limited(one.process, resource.RLIMIT_NOFILE, used):
            outcome, why = one.ask(two.addresses, b"x")
        assert outcome == Outcome.LOST
        assert b"Too many open files" in why
        with ExecutorEnd() as three:
            assert one.ask(three.addresses, b"y") == (Outcome.HERE, b"y")


@pytest.mark.parametrize(
    ("change", "limit", "reason"),
    [
        ({}, 1 << 20, "File too large"),
        # Not an address of this host (RFC 5737).
        ({"host": "203.0.113.9"}, resource.RLIM_INFINITY, "203.0.113.9"),
    ],
)
def test_a_sidecar_that_cannot_start_reports_why_and_removes_its_folder(tmp_path, change, limit, reason):
    folder = tmp_path / "sidecar"
    folder.mkdir(mode=0o700)
    with sidecar_process(folder) as process:
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limit, limit))
        send_line(process, start_line(transport="tcp", **change))
        if process.stdout.readline().startswith("ready "):
            with socket.socket(socket.AF_UNIX) as executor_channel:
                executor_channel.connect(str(folder / "executor.sock"))
                executor_channel.sendall(TOKEN.encode() + b"A" + encode(offer(b"A")))
                executor_channel.recv(1)
        assert process.wait(PATIENCE_S) == 1
        error = process.stderr.read()
    assert "the transfer sidecar cannot start" in error
    assert reason in error
    assert not folder.exists()


def test_a_firewall_that_drops_connections_costs_the_time_limit_only_once():
    with socket.create_server(("127.0.0.1", 0), backlog=0) as deaf, contextlib.ExitStack() as stack:
        port = deaf.getsockname()[1]
        # The queue is full: the kernel silently drops further connections.
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.1", port))
        one = stack.enter_context(ExecutorEnd(transport="tcp"))
        times = []
        for _ in range(2):
            start = time.monotonic()
            assert one.ask({"tcp": f"127.0.0.1:{port}"}, b"x", seconds=10.0)[0] == Outcome.LOST
            times.append(time.monotonic() - start)
        assert 1.5 < times[0] < 8.0
        # The address is not tried again for a while.
        assert times[1] < 1.0
        assert one.status()["tcp"]["failures"] == 1


def test_a_peer_of_another_version_is_refused_with_a_remedy(monkeypatch):
    ours = handshake.Accepting(SECRET, encrypted=False)
    mine = handshake.Connecting(SECRET, encrypted=False)
    answer = ours.answer(mine.hello)
    version = handshake.VERSION
    monkeypatch.setattr(handshake, "VERSION", version + 1)
    message = f"has protocol version {version}, this process {version + 1}: use the same Penstock everywhere"
    with pytest.raises(PeerRefusedError, match=message):
        handshake.Accepting(SECRET, encrypted=False).answer(mine.hello)
    with pytest.raises(PeerRefusedError, match="use the same Penstock everywhere"):
        mine.proof(answer)


def test_a_sidecar_announces_its_version():
    with ExecutorEnd() as one:
        assert one.announced["penstock"] == __version__


def looked(tmp_path, module):
    """Return the survey of transports by a Python whose mpi4py is the given module."""
    package = tmp_path / "mpi4py"
    package.mkdir()
    for name, text in module.items():
        (package / name).write_text(text)
    code = "import json; from penstock.sidecars.transfer.offers import survey; print(json.dumps(survey()))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ({"__init__.py": "raise ImportError('libmpi.so.12: cannot open shared object file')"}, "libmpi.so.12"),
        (
            {
                "__init__.py": "class rc: pass",
                "MPI.py": "def Get_library_version(): return 'Open MPI v4.1.4, package: Debian'",
            },
            "it is Open MPI v4.1.4,",
        ),
    ],
)
def test_a_missing_or_unsuitable_mpi_is_reported_with_a_remedy(tmp_path, module, reason):
    found = looked(tmp_path, module)
    assert reason in found["mpi"]
    assert "leave spark.penstock.transport=auto" in found["mpi"]
    assert found["tcp"] == found["local"] == ""


@pytest.mark.skipif(Path("/dev/infiniband").exists(), reason="this host has RDMA")
def test_verbs_without_a_device_are_reported_with_a_remedy():
    assert "install Debian's python3-pyverbs" in survey()["verbs"]
