"""A Unix socket in a folder of its own, for who started this process and nobody else."""

import os
import socket
from pathlib import Path


def listen(name: Path, backlog: int) -> socket.socket:
    """Make a socket that only this user may connect to.

    Raises
    ------
    OSError
        It cannot be made.
    """
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        server.bind(str(name))
    finally:
        os.umask(before)
    server.listen(backlog)
    return server


def remove(name: Path) -> None:
    """Remove the socket's name and its folder, where they are still there."""
    name.unlink(missing_ok=True)
    try:
        name.parent.rmdir()
    except OSError:
        # Already gone, or it holds what is not ours.
        return
