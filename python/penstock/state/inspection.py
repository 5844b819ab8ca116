"""Summarizes in numbers what a checkpoint holds."""

from dataclasses import dataclass
from uuid import UUID

from penstock.state.checkpoint import FOLDERS, Checkpoint
from penstock.state.manifest import Manifest, Shard, manifest_path
from penstock.state.routing_version import Description, RoutingVersion


@dataclass(frozen=True)
class ShardSummary:
    """A shard after the newest batch. `bytes` is the size of its keys and values."""

    shard: int
    keys: int
    bytes: int
    version: int
    lineage: UUID
    snapshot_version: int | None
    deltas: int


@dataclass(frozen=True)
class StoreSummary:
    """A state store of an operator."""

    operator_id: int
    operator: str | None
    store: str
    shards: list[ShardSummary]


@dataclass(frozen=True)
class FileSummary:
    """A file. `needed` says whether the state of a kept batch cannot be read without it."""

    path: str
    bytes: int
    needed: bool


@dataclass(frozen=True)
class Inspection:
    """Contents of a checkpoint. `manifest` is None if no batch of the query has ended."""

    location: str
    description: Description
    batches: list[int]
    committed_batch: int | None
    manifest: Manifest | None
    routing_versions: list[RoutingVersion]
    stores: list[StoreSummary]
    files: list[FileSummary]

    @property
    def orphans(self) -> list[FileSummary]:
        """Files that no kept batch needs."""
        return [file for file in self.files if not file.needed]


def inspect(checkpoint: Checkpoint) -> Inspection:
    """Read the newest state, and determine which files the kept batches need.

    Raises
    ------
    DamagedFileError
        A file that is needed for that cannot be used.
    """
    kept = checkpoint.kept()
    newest = kept[-1] if kept else None
    return Inspection(
        location=checkpoint.location,
        description=checkpoint.description(),
        batches=sorted({manifest.batch for manifest in kept}),
        committed_batch=checkpoint.committed_batch(),
        manifest=newest,
        routing_versions=[checkpoint.routing_version(number) for number in checkpoint.routing_version_numbers()],
        stores=[] if newest is None else _stores(checkpoint, newest),
        files=needs(checkpoint.all_files(), kept),
    )


def needs(files: dict[str, int], kept: list[Manifest]) -> list[FileSummary]:
    """Determine which files are needed.

    Parameters
    ----------
    files
        Sizes in bytes of all files, by path.
    kept
        Manifests of the kept batches that count.
    """
    needed = {manifest_path(manifest.batch, manifest.generation) for manifest in kept}
    needed.update(path for manifest in kept for path in manifest.paths())
    return [FileSummary(path, size, path in needed or _is_settled(path)) for path, size in files.items()]


def _is_settled(path: str) -> bool:
    folder, _, name = path.rpartition("/")
    return path == "FORMAT" or (folder == "epochs" and name.isdigit())


def _stores(checkpoint: Checkpoint, manifest: Manifest) -> list[StoreSummary]:
    names = checkpoint.operator_names()
    return [
        StoreSummary(
            key.operator_id,
            names.get(key.operator_id),
            key.store_name,
            [_shard(checkpoint, number, shard) for number, shard in enumerate(shards)],
        )
        for key, shards in sorted(manifest.stores.items(), key=lambda item: (item[0].operator_id, item[0].store_name))
    ]


def _shard(checkpoint: Checkpoint, number: int, shard: Shard) -> ShardSummary:
    families = checkpoint.content(shard.parts).values()
    return ShardSummary(
        shard=number,
        keys=sum(len(family) for family in families),
        bytes=sum(len(key) + len(value) for family in families for key, value in family.items()),
        version=shard.version,
        lineage=shard.lineage,
        snapshot_version=shard.snapshot.version if shard.snapshot else None,
        deltas=len(shard.deltas),
    )


def by_folder(files: list[FileSummary]) -> dict[str, tuple[int, int]]:
    """Count files and their bytes by folder."""
    found = {}
    for folder in FOLDERS:
        own = [file for file in files if file.path.startswith(f"{folder}/")]
        found[folder] = (len(own), sum(file.bytes for file in own))
    return found
