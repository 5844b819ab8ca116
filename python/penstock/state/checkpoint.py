"""Finds and reads the files of one query's state, and names the file that is damaged."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TypeVar

from penstock.api.errors import PenstockError
from penstock.state import change_set, image
from penstock.state.change_set import Content
from penstock.state.framing import HEADER_BYTES, Kind, MalformedDataError, NewerFormatError, check, read_header
from penstock.state.manifest import Change, Manifest, Section, TableEntry, counting, decode, decode_table, manifest_path
from penstock.state.routing_version import Description, RoutingVersion, decode_description, decode_routing_version
from penstock.state.storage import Storage, storage_of

_T = TypeVar("_T")

PLACE = "state/_penstock"
FOLDERS = ("epochs", "manifests", "changelogs", "snapshots")
_NUMBER = re.compile("[0-9]{1,19}")
_NUMBERED = re.compile(r"[0-9]+-[0-9a-f-]{36}")
_NAMES = {
    "": re.compile("FORMAT"),
    "epochs": re.compile("[0-9]+"),
    "manifests": re.compile(r"[0-9]+\.[0-9]+"),
    "changelogs": _NUMBERED,
    "snapshots": _NUMBERED,
}
"""Patterns of file names by folder."""


class DamagedFileError(PenstockError):
    """A file of a checkpoint cannot be used: PENSTOCK_CORRUPT_FILE, PENSTOCK_MISSING_FILE, PENSTOCK_NEWER_FORMAT.

    Parameters
    ----------
    error_class
        One of these codes.
    path
        Path of the file, relative to the query's Penstock directory.
    what
        What is wrong with the file.
    at_byte
        Position from the start of the file; None if a position is not meaningful.
    """

    def __init__(self, error_class: str, path: str, what: str, at_byte: int | None) -> None:
        super().__init__(error_class, f"{path}: {what}" + ("" if at_byte is None else f", at byte {at_byte}"))
        self.path = path
        self.what = what
        self.at_byte = at_byte


class Checkpoint:
    """A query's checkpoint.

    Parameters
    ----------
    location
        Path or URI that the query was given as `checkpointLocation`.

    Raises
    ------
    PenstockError
        PENSTOCK_NO_STATE if Penstock has written nothing there.
    """

    def __init__(self, location: str) -> None:
        self._storage: Storage = storage_of(location)
        self.location = self._storage.root
        if not any(file.name == "FORMAT" for file in self._storage.files(PLACE)):
            raise PenstockError("PENSTOCK_NO_STATE", f"{self.location} {self._found_instead()}")

    def _found_instead(self) -> str:
        if self._storage.folders("state"):
            return "is the checkpoint of a query whose state is kept by another store provider, not by Penstock."
        if "offsets" in self._storage.folders(""):
            return "is the checkpoint of a query without state, at least so far."
        return "is not the checkpoint of a streaming query: give the checkpointLocation of the query."

    def description(self) -> Description:
        """Read the file FORMAT."""
        return self._decoded("FORMAT", Kind.FORMAT, decode_description)

    def routing_version_numbers(self) -> list[int]:
        """List the numbers of the stored routing versions, in ascending order."""
        return sorted(_numbers(f.name for f in self._storage.files(f"{PLACE}/epochs")))

    def routing_version(self, number: int) -> RoutingVersion:
        """Read the routing version with a number."""
        path = f"epochs/{number}"
        routing_version = self._decoded_as(path, Kind.ROUTING_VERSION, decode_routing_version)
        if routing_version.number != number:
            raise _corrupt(path, f"the file has routing version {routing_version.number}", HEADER_BYTES)
        return routing_version

    def manifests(self) -> dict[int, list[int]]:
        """List the generations of every batch's manifest, both in ascending order."""
        found: dict[int, list[int]] = {}
        for file in self._storage.files(f"{PLACE}/manifests"):
            numbers = [*_numbers(file.name.split("."))]
            if file.name.count(".") == 1 and len(numbers) == len(("batch", "generation")):
                batch, generation = numbers
                found.setdefault(batch, []).append(generation)
        return {batch: sorted(found[batch]) for batch in sorted(found)}

    def retained_from(self) -> int:
        """Return the oldest batch that is kept completely, according to the newest readable manifest."""
        for batch, generations in reversed(self.manifests().items()):
            found = []
            for generation in generations:
                with suppress(DamagedFileError):
                    found.append(self.manifest(batch, generation).retained_from)
            if found:
                return max(found)
        return 0

    def kept(self) -> list[Manifest]:
        """Read the manifests that count, by batch and generation in ascending order.

        These are the newest manifests of every retained batch, and the manifests that they build on.

        Raises
        ------
        DamagedFileError
            One of them cannot be used.
        """
        kept: list[Manifest] = []
        oldest = self.retained_from()
        for batch, generations in reversed(self.manifests().items()):
            if batch < oldest:
                break
            counted = counting(generations, (after for after in kept if after.batch == batch + 1))
            kept[:0] = [self.manifest(batch, generation) for generation in sorted(counted)]
        return kept

    def manifest(self, batch: int, generation: int) -> Manifest:
        """Read a manifest."""
        path = manifest_path(batch, generation)
        manifest = self._decoded(path, Kind.MANIFEST, decode)
        if (manifest.batch, manifest.generation) != (batch, generation):
            raise _corrupt(
                path, f"the file has generation {manifest.generation} of batch {manifest.batch}", HEADER_BYTES
            )
        if overlap := manifest.overlap():
            one, other = (f"shard {e.shard} of operator {e.store.operator_id}" for e in overlap)
            raise _corrupt(path, f"{one} and {other} share bytes of {overlap[0].section.path}", HEADER_BYTES)
        return manifest

    def table(self, path: str) -> list[TableEntry]:
        """Read the section table of a changelog or snapshot file."""
        kind = Kind.CHANGELOG if path.startswith("changelogs/") else Kind.SNAPSHOTS
        return self._decoded(path, kind, lambda body: decode_table(body, path))

    def section(self, section: Section) -> bytes:
        """Read a section and check its checksum."""
        try:
            data = self._storage.read(f"{PLACE}/{section.path}", section.offset, section.length)
        except FileNotFoundError as error:
            raise _missing(section.path) from error
        if len(data) < section.length:
            missing = section.length - len(data)
            raise _corrupt(section.path, f"the file ends {missing} bytes too early", section.offset + len(data))
        return _located(section.path, 0, lambda: check(data, section.crc, "section", section.offset))

    def content(self, parts: Iterable[Change]) -> Content:
        """Rebuild a shard from its snapshot and its deltas."""
        content: Content = {}
        for part in parts:
            self.apply(part.section, content)
        return content

    def apply(self, section: Section, content: Content) -> None:
        """Apply a section to a shard's content: changes, or an image, which replaces the content."""
        data = self.section(section)

        def applied() -> None:
            if section.is_image:
                decoded = image.decode(data)
                content.clear()
                content.update(decoded)
            else:
                change_set.apply(data, content)

        _located(section.path, section.offset, applied)

    def moves(self, section: Section) -> change_set.Moves:
        """Read the keys that a section moves between shards."""
        data = self.section(section)
        return _located(section.path, section.offset, lambda: change_set.moves(data))

    def committed_batch(self) -> int | None:
        """Return the newest batch in Spark's commit log."""
        return max(_numbers(f.name for f in self._storage.files("commits")), default=None)

    def query_id(self) -> str:
        """Return Spark's id of the query; empty if the checkpoint does not have it."""
        try:
            return str(json.loads(self._storage.read("metadata"))["id"])
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return ""

    def operator_names(self) -> dict[int, str]:
        """Return the operators' names from Spark's own metadata, as far as it can be read."""
        names = {}
        for operator in _numbers(self._storage.folders("state")):
            try:
                versions = self._storage.files(f"state/{operator}/_metadata/v2")
                newest = max(_numbers(f.name for f in versions), default=None)
                path = "metadata" if newest is None else f"v2/{newest}"
                lines = self._storage.read(f"state/{operator}/_metadata/{path}").decode().splitlines()
                names[operator] = str(json.loads(lines[1])["operatorInfo"]["operatorName"])
            except (OSError, ValueError, LookupError, TypeError, RecursionError):
                continue
        return names

    def partitions(self, operator_id: int) -> set[int]:
        """List the numbers of an operator's state partition folders."""
        return set(_numbers(self._storage.folders(f"state/{operator_id}")))

    def all_files(self) -> dict[str, int]:
        """Map the paths of all files of Penstock to their sizes in bytes; files of other programs are excluded."""
        return {
            f"{folder}/{file.name}".lstrip("/"): file.size_bytes
            for folder, name in _NAMES.items()
            for file in self._storage.files(f"{PLACE}/{folder}")
            if name.fullmatch(file.name)
        }

    def _decoded(self, path: str, kind: Kind, decode_body: Callable[[bytes], _T]) -> _T:
        return self._decoded_as(path, kind, lambda body, _version: decode_body(body))

    def _decoded_as(self, path: str, kind: Kind, decode_body: Callable[[bytes, int], _T]) -> _T:
        try:
            header = self._storage.read(f"{PLACE}/{path}", 0, HEADER_BYTES)
            version, length, crc = _located(path, 0, lambda: read_header(header, kind))
            body = self._storage.read(f"{PLACE}/{path}", HEADER_BYTES, length + (not kind.has_payload))
        except FileNotFoundError as error:
            raise _missing(path) from error
        if len(body) < length:
            what = f"body has {len(body)} bytes, expected {length}"
            raise _corrupt(path, what, HEADER_BYTES + len(body))
        if len(body) > length:
            raise _corrupt(path, "bytes follow where the file should end", HEADER_BYTES + length)
        _located(path, 0, lambda: check(body, crc, "body", HEADER_BYTES))
        return _located(path, HEADER_BYTES, lambda: decode_body(body, version))


def _numbers(names: Iterable[str]) -> Iterator[int]:
    """Return the names that are numbers as Spark and Penstock write them: decimal, of at most 64 bits."""
    return (int(name) for name in names if _NUMBER.fullmatch(name))


def _located(path: str, base: int, read: Callable[[], _T]) -> _T:
    try:
        return read()
    except NewerFormatError as error:
        what = f"{error.what}; use the Penstock version that wrote the checkpoint, or a newer one"
        raise DamagedFileError("PENSTOCK_NEWER_FORMAT", path, what, None) from error
    except MalformedDataError as error:
        raise _corrupt(path, error.what, base + error.at_byte) from error


def _corrupt(path: str, what: str, at_byte: int | None) -> DamagedFileError:
    return DamagedFileError("PENSTOCK_CORRUPT_FILE", path, what, at_byte)


def _missing(path: str) -> DamagedFileError:
    return DamagedFileError("PENSTOCK_MISSING_FILE", path, "the file does not exist, but the state needs it", None)
