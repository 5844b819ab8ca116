"""The process of a transfer sidecar: how it starts, what it ends with, and what it leaves behind."""

import contextlib
import os
import socket
import time
from pathlib import Path

import pytest
from executor_end import ExecutorEnd, offer
from penstock.sidecars.transfer.__main__ import read_start
from penstock.sidecars.transfer.channel_records import RECORD, Kind, Record, decode, encode
from sidecar_process import PATIENCE_S, TOKEN, send_line, sidecar_process, start_line


def left_behind(folder):
    return [path for path in (folder,) if path.exists()] + list(Path("/dev/shm").glob("penstock*"))  # noqa: S108


@pytest.mark.parametrize("death", ["the executor's end", "kill", "both"])
def test_a_sidecar_leaves_nothing_behind_however_it_ends(death):
    end = ExecutorEnd()
    process = end.process
    # Already true while the channels are open: files without names cannot be left behind.
    assert left_behind(end.folder) == []
    if death == "the executor's end":
        process.stdin.close()
        assert process.wait(20) == 0
    else:
        process.kill()
        process.wait(20)
    if death == "both":
        del end.asking
    assert left_behind(end.folder) == []
    for connection in end.sockets:
        connection.close()
    process.stdout.close()
    process.stderr.close()


def test_a_sidecar_ends_with_an_executor_that_dies_before_its_channels_open(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o700)
    with sidecar_process(folder) as process:
        send_line(process, start_line())
        assert process.stdout.readline().startswith("ready ")
        process.stdin.close()
        assert process.wait(20) == 0
    assert not folder.exists()


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{}",
        "[]",
        start_line(token="short"),  # noqa: S106
        start_line(channels=0),
        start_line(channels=65),
        start_line(transport="pigeon"),
        start_line(secret="none"),  # noqa: S106
    ],
)
def test_an_invalid_start_line_is_refused(line, tmp_path):
    with pytest.raises((ValueError, KeyError, TypeError)):
        read_start(line)
    with sidecar_process(tmp_path) as process:
        _, error = process.communicate(line, timeout=PATIENCE_S)
        assert process.returncode == 2
    assert "only an executor starts this process" in error


def test_a_wrong_token_or_an_invalid_offer_gets_no_channel(tmp_path):
    token = TOKEN.encode()
    wrong_size = encode(offer(b"G"))
    no_offer = encode(Record(Kind.TAKEN, 0))
    name = tmp_path / "executor.sock"
    with sidecar_process(tmp_path) as process, contextlib.ExitStack() as opened:
        send_line(process, start_line())
        assert process.stdout.readline().startswith("ready ")
        assert name.stat().st_mode & 0o777 == 0o600
        for data in (b"1" * 64 + b"A", token + b"X", b"0" * 10, token + b"A" + wrong_size, token + b"G" + no_offer):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(20)
                connection.connect(str(name))
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                assert connection.recv(32) == b""
        channels = []
        for role in (b"A", b"G"):
            connection = opened.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            connection.connect(str(name))
            connection.sendall(token + role + encode(offer(role)))
            assert decode(connection.recv(RECORD.size)).kind == Kind.CHANNEL_MEMORY
            channels.append(connection)
        assert process.stdout.readline() == "open\n"
        # An invalid record ends the sidecar, because later bytes could not be trusted.
        channels[0].sendall(os.urandom(RECORD.size))
        assert process.wait(20) == 1


def test_an_idle_sidecar_uses_no_processor_time():
    with ExecutorEnd() as end:
        end.status()

        def ticks():
            fields = Path(f"/proc/{end.process.pid}/stat").read_text().rpartition(")")[2].split()
            return int(fields[11]) + int(fields[12])

        before = ticks()
        # The sleep is the workload: the sidecar is idle for this long.
        time.sleep(2)
        assert (ticks() - before) / os.sysconf("SC_CLK_TCK") < 0.1
