"""`python -m penstock.sidecars.planner FOLDER`: started by the driver, which sends the token to standard input."""

import os
import sys
import threading
from pathlib import Path

from penstock.process.private_socket import listen, remove
from penstock.sidecars.planner.frame import BrokenFrameError
from penstock.sidecars.planner.planner import Planner
from penstock.sidecars.planner.server import serve
from penstock.sidecars.planner.warm_up import warm_up

SOCKET = "driver.sock"
TOKEN_CHARS = 64


def main(folder: Path) -> int:
    """Serve one connection, and return the exit status."""
    token = sys.stdin.readline().strip()
    if len(token) != TOKEN_CHARS:
        print("penstock: no token on standard input: only the driver starts this process", file=sys.stderr)
        return 2
    threading.Thread(target=_end_with_driver, args=(folder,), daemon=True).start()
    try:
        with listen(folder / SOCKET, 1) as server:
            warm_up()
            print("ready", flush=True)
            connection, _ = server.accept()
        with connection:
            serve(connection, token, Planner())
    except (BrokenFrameError, OSError) as error:
        print(f"penstock: {error}", file=sys.stderr)
        return 1
    finally:
        remove(folder / SOCKET)
    return 0


def _end_with_driver(folder: Path) -> None:
    # The pipe closes when the driver ends, in whatever way.
    # Reads are unbuffered, because a thread that waits with a buffer's lock would abort the interpreter at exit.
    while os.read(sys.stdin.fileno(), 1024):
        pass
    remove(folder / SOCKET)
    os._exit(0)


if __name__ == "__main__":
    if len(sys.argv) != 2:  # noqa: PLR2004
        print("penstock: usage: python -m penstock.sidecars.planner FOLDER", file=sys.stderr)
        sys.exit(2)
    sys.exit(main(Path(sys.argv[1])))
