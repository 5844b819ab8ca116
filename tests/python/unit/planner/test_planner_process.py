"""The process of the planner sidecar: how it starts, and what it ends with."""

import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from driver_end import Client, hello
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


def test_the_process_ends_when_its_driver_is_killed(folder):
    # A driver that starts a sidecar, prints its process ID, and waits.
    driver = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import subprocess, sys, time\n"
            "command = [sys.executable, '-m', 'penstock.sidecars.planner', sys.argv[1]]\n"
            "p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)\n"
            "p.stdin.write('a' * 64 + '\\n'); p.stdin.flush(); p.stdout.readline()\n"
            "print(p.pid, flush=True); time.sleep(60)",
            str(folder),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    sidecar = int(driver.stdout.readline())
    driver.send_signal(signal.SIGKILL)
    driver.wait(20)
    deadline = time.monotonic() + 20
    while Path(f"/proc/{sidecar}").exists() and time.monotonic() < deadline:
        if Path(f"/proc/{sidecar}/stat").read_text().split()[2] == "Z":
            break
        time.sleep(0.05)
    else:
        assert not Path(f"/proc/{sidecar}").exists(), f"{os.getpid()}: sidecar {sidecar} outlived its driver"
    deadline = time.monotonic() + 20
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.05)


@pytest.mark.parametrize("token", ["", "short"])
def test_the_process_refuses_an_invalid_token(folder, token):
    process = start(folder, token)
    assert process.wait(20) == 2
    assert "only the driver starts this process" in process.stderr.read()
    process.stdin.close()
    folder.rmdir()
