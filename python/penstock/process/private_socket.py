"""A Unix socket in a folder of its own, which only the user that started this process can connect to."""

import os
import socket
from pathlib import Path


def listen(name: Path, backlog: int) -> socket.socket:
    """Create a socket that only this user may connect to.

    Raises
    ------
    OSError
        The socket cannot be created.
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
    """Remove the socket and its folder, if they still exist."""
    name.unlink(missing_ok=True)
    try:
        name.parent.rmdir()
    except OSError:
        # The folder no longer exists, or it contains other files.
        return
