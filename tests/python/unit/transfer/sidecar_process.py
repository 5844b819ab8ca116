"""Starts the process of a transfer sidecar as an executor does."""

import json
import subprocess
import sys

SECRET = b"of one application"
TOKEN = "0" * 64
PATIENCE_S = 30.0


def start_line(**other):
    """Return the first line for a sidecar. `other` are the fields that are not the usual ones."""
    usual = {
        "token": TOKEN,
        "secret": SECRET.hex(),
        "host": "127.0.0.1",
        "transport": "auto",
        "encrypted": False,
        "channels": 1,
    }
    return json.dumps(usual | other)


def sidecar_process(folder):
    """Return a process that waits for its first line. It ends when its standard input is closed."""
    return subprocess.Popen(
        [sys.executable, "-m", "penstock.sidecars.transfer", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def send_line(process, line):
    process.stdin.write(line + "\n")
    process.stdin.flush()
