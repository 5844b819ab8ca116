"""The process of the planner sidecar: how it starts, and what it ends with."""

import signal
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from driver_end import Client, hello
from eventually import eventually
from penstock.sidecars.planner.frame import (
    Kind,
)
from planner_messages import TOKEN, measured


@pytest.fixture
def folder():
    path = Path(tempfile.mkdtemp(prefix="penstock-"))
    yield path
    assert not path.exists(), "the sidecar left its folder behind"


def start(folder, token=TOKEN):
    process = subprocess.Popen(
        [sys.executable, "-m", "penstock.sidecars.planner", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdin.write(token + "\n")
    process.stdin.flush()
    return process


def connect(folder):
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(20)
    connection.connect(str(folder / "driver.sock"))
    return Client(connection)


def test_the_process_serves_one_connection_and_ends_with_it(folder):
    process = start(folder)
    assert process.stdout.readline() == "ready\n"
    mode = stat.S_IMODE((folder / "driver.sock").stat().st_mode)
    assert mode == 0o600
    client = connect(folder)
    assert hello(client).kind == Kind.WELCOME
    assert client.ask(measured()).kind == Kind.PLANNED
    client.connection.close()
    assert process.wait(20) == 0
    process.stdin.close()


def test_the_process_ends_when_its_standard_input_is_closed(folder):
    process = start(folder)
    assert process.stdout.readline() == "ready\n"
    client = connect(folder)
    hello(client)
    process.stdin.close()
    assert process.wait(20) == 0


def has_ended(pid):
    """Whether a process does not exist, or has only not been waited for yet (state Z)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_the_process_ends_when_its_driver_is_killed(folder):
    # A driver that starts a sidecar, prints its process ID, and waits for the end of its standard input.
    driver = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import subprocess, sys\n"
            "command = [sys.executable, '-m', 'penstock.sidecars.planner', sys.argv[1]]\n"
            "p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)\n"
            "p.stdin.write('a' * 64 + '\\n'); p.stdin.flush(); p.stdout.readline()\n"
            "print(p.pid, flush=True); sys.stdin.read()",
            str(folder),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    sidecar = int(driver.stdout.readline())
    driver.send_signal(signal.SIGKILL)
    driver.wait(20)
    driver.stdin.close()
    driver.stdout.close()
    eventually(lambda: has_ended(sidecar), timeout_s=20, what=f"sidecar {sidecar} ends with its driver")
    eventually(lambda: not folder.exists(), timeout_s=20, what="the sidecar removes its folder")


@pytest.mark.parametrize("token", ["", "short"])
def test_the_process_refuses_an_invalid_token(folder, token):
    process = start(folder, token)
    assert process.wait(20) == 2
    assert "only the driver starts this process" in process.stderr.read()
    process.stdin.close()
    folder.rmdir()
