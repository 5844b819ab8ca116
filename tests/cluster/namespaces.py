"""Network namespaces that a bridge connects, with links that can be cut."""

import contextlib
import os
import subprocess
from pathlib import Path

NETWORK = "10.77.0"
BRIDGE, PROBE = "pst-bridge", "pst-probe"
HOST = f"{NETWORK}.1"


def can_be_made() -> str:
    """Return why network namespaces cannot be made here, or an empty text if they can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    try:
        # Another name than the bridge's, which an interrupted run may have left.
        ip("link", "add", PROBE, "type", "bridge")
        ip("link", "del", PROBE)
    except (OSError, subprocess.CalledProcessError) as error:
        return f"ip cannot make a bridge: {error}"
    return ""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)  # noqa: S607


class Namespace:
    """A network namespace with its own address."""

    def __init__(self, number: int) -> None:
        self.name = f"pst-{number}"
        self.link = f"pst-v{number}"
        self.address = f"{NETWORK}.{10 + number}"
        self.file = Path("/run/netns") / self.name
        ip("netns", "add", self.name)
        ip("link", "add", self.link, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        ip("link", "set", self.link, "master", BRIDGE, "up")
        self._inside("addr", "add", f"{self.address}/24", "dev", "eth0")
        self._inside("link", "set", "eth0", "up")
        self._inside("link", "set", "lo", "up")

    def _inside(self, *words: str) -> None:
        ip("-n", self.name, *words)

    def command(self, *words: str) -> list[str]:
        return ["ip", "netns", "exec", self.name, *words]

    def cut(self) -> None:
        ip("link", "set", self.link, "down")

    def join(self) -> None:
        ip("link", "set", self.link, "up")


@contextlib.contextmanager
def namespaces(count: int):
    """Make this number of namespaces, and remove them at the end."""
    remove(count)
    ip("link", "add", BRIDGE, "type", "bridge")
    try:
        ip("addr", "add", f"{HOST}/24", "dev", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        yield [Namespace(number) for number in range(count)]
    finally:
        remove(count)


def remove(count: int) -> None:
    for words in (*(("netns", "del", f"pst-{number}") for number in range(count)), ("link", "del", BRIDGE)):
        with contextlib.suppress(subprocess.CalledProcessError):
            ip(*words)
