"""Access to a checkpoint's files: in a local folder, or in any file system that pyarrow supports."""

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from penstock.api.errors import PenstockError


@dataclass(frozen=True)
class StoredFile:
    """A file as listed in its folder."""

    name: str
    size_bytes: int


class Storage(Protocol):
    """Reads the files below one folder. Paths are relative to it, with `/` as separator."""

    root: str

    def files(self, folder: str) -> list[StoredFile]:
        """List the files of a folder by name, without hidden ones; empty if the folder does not exist."""
        ...

    def folders(self, folder: str) -> list[str]:
        """List the folders of a folder by name."""
        ...

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """Read a range, to the end if no length is given, and less if the file ends; may raise `FileNotFoundError`."""
        ...


class LocalStorage:
    """A folder of this machine."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.root = str(root)

    def files(self, folder: str) -> list[StoredFile]:
        """List files."""
        found = []
        for entry in self._entries(folder):
            try:
                status = entry.stat()
            except OSError:
                continue  # the running query has deleted it since it was listed, or it is a dangling link
            # Opening a pipe or a device could block for ever, and they are not files of a checkpoint.
            if stat.S_ISREG(status.st_mode):
                found.append(StoredFile(entry.name, status.st_size))
        return found

    def folders(self, folder: str) -> list[str]:
        """List folders."""
        return [entry.name for entry in self._entries(folder) if entry.is_dir()]

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """Read a range."""
        at = self._root / path
        if not at.is_file():
            raise FileNotFoundError(errno.ENOENT, "not a regular file", str(at))
        with at.open("rb") as file:
            size = max(os.fstat(file.fileno()).st_size - offset, 0)
            file.seek(offset if size else 0)
            return file.read(size if length is None else min(length, size))

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self._root / folder) as entries:
                return sorted((e for e in entries if not e.name.startswith(".")), key=lambda e: e.name)
        except (FileNotFoundError, NotADirectoryError):
            return []


class ArrowStorage:
    """A folder of a file system that pyarrow supports, such as `s3://bucket/folder` or `hdfs://host/folder`."""

    def __init__(self, uri: str) -> None:
        from pyarrow import fs  # noqa: PLC0415, not needed for a local checkpoint

        self._fs = fs
        self._system, path = fs.FileSystem.from_uri(uri)
        self._path = path.rstrip("/")
        self.root = uri.rstrip("/")

    def files(self, folder: str) -> list[StoredFile]:
        """List files."""
        return [
            StoredFile(info.base_name, info.size)
            for info in self._entries(folder)
            if info.type == self._fs.FileType.File
        ]

    def folders(self, folder: str) -> list[str]:
        """List folders."""
        return [info.base_name for info in self._entries(folder) if info.type == self._fs.FileType.Directory]

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """Read a range."""
        with self._system.open_input_file(f"{self._path}/{path}") as file:
            size = max(file.size() - offset, 0)
            return bytes(file.read_at(size if length is None else min(length, size), offset))

    def _entries(self, folder: str) -> list[Any]:
        selector = self._fs.FileSelector(f"{self._path}/{folder}", allow_not_found=True)
        entries = [e for e in self._system.get_file_info(selector) if not e.base_name.startswith(".")]
        return sorted(entries, key=lambda e: e.base_name)


def storage_of(location: str) -> Storage:
    """Return the storage for a path or a URI.

    Raises
    ------
    PenstockError
        PENSTOCK_MISSING_PACKAGE, PENSTOCK_UNREADABLE_CHECKPOINT.
    """
    parts = urlsplit(location)
    if not parts.scheme:
        return LocalStorage(Path(location))
    if parts.scheme == "file":
        return LocalStorage(Path(unquote(parts.path)))
    try:
        return ArrowStorage(location)
    except ModuleNotFoundError as error:
        raise PenstockError(
            "PENSTOCK_MISSING_PACKAGE",
            f"Reading {location} needs the package {error.name}, which is not installed. Run pip install pyarrow, or "
            "copy the checkpoint to this machine and give its path.",
        ) from error
    except (ValueError, OSError) as error:
        raise PenstockError(
            "PENSTOCK_UNREADABLE_CHECKPOINT",
            f"{location} cannot be opened: {error}. Give a path, or a URI that pyarrow can open (s3, gs, hdfs, file).",
        ) from error
