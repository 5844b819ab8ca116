"""Writes the initial file system of the virtual machine: BusyBox, kernel modules in load order, and `init`.

usage: initramfs.py KERNEL_FOLDER BUSYBOX INIT OUT
"""

import gzip
import lzma
import re
import stat
import sys
from pathlib import Path

WANTED = "virtio_pci 9pnet_virtio 9p dummy crc32_generic crc32c_generic ib_uverbs rdma_ucm rdma_rxe"
FOLDERS = "bin dev proc sys mnt mods newroot out tmp"
COMMANDS = "sh mount insmod ip mkdir cat echo chroot sync poweroff env"


class Modules:
    """The modules of a kernel, in the order in which they must be loaded."""

    def __init__(self, folder: Path) -> None:
        found = folder.glob("lib/modules/*/kernel/**/*.ko*")
        self._files = {path.name.split(".ko")[0].replace("-", "_"): path for path in found}
        self.order: dict[str, bytes] = {}

    def need(self, name: str) -> None:
        """Add a module after those that it needs. Modules that are built into the kernel have no file."""
        if name in self.order or name not in self._files:
            return
        path = self._files[name]
        data = path.read_bytes()
        if path.suffix == ".xz":
            data = lzma.decompress(data)
        for needed in re.findall(rb"\0depends=([^\0]*)", data):
            for other in filter(None, needed.decode().split(",")):
                self.need(other.replace("-", "_"))
        for first in re.findall(rb"\0softdep=pre:([^\0]*)", data):
            for other in first.decode().split("post:")[0].split():
                self.need(other.replace("-", "_"))
        self.order[name] = data


class Archive:
    """A cpio archive of the format `newc`."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._number = 0

    def add(self, name: str, mode: int, data: bytes = b"", device: tuple[int, int] = (0, 0)) -> None:
        """Add a file."""
        self._number += 1
        fields = (self._number, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name) + 1, 0)
        self._data += b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
        self._pad()
        self._data += data
        self._pad()

    def bytes(self) -> bytes:
        """Return the complete archive."""
        self.add("TRAILER!!!", 0)
        return bytes(self._data)

    def _pad(self) -> None:
        self._data += b"\0" * (-len(self._data) % 4)


def main(kernel: str, busybox: str, init: str, out: str) -> None:
    """Write the file system."""
    modules = Modules(Path(kernel))
    for name in WANTED.split():
        modules.need(name)
    archive = Archive()
    for folder in FOLDERS.split():
        archive.add(folder, stat.S_IFDIR | 0o755)
    archive.add("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
    archive.add("bin/busybox", stat.S_IFREG | 0o755, Path(busybox).read_bytes())
    for command in COMMANDS.split():
        archive.add(f"bin/{command}", stat.S_IFLNK | 0o777, b"busybox")
    for number, (name, data) in enumerate(modules.order.items()):
        archive.add(f"mods/{number:02d}_{name}.ko", stat.S_IFREG | 0o644, data)
    archive.add("init", stat.S_IFREG | 0o755, Path(init).read_bytes())
    Path(out).write_bytes(gzip.compress(archive.bytes(), 6))


if __name__ == "__main__":
    main(*sys.argv[1:])
