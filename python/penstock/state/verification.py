"""Reads every file of a checkpoint and reports what is wrong."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from penstock.state.change_set import Content
from penstock.state.checkpoint import Checkpoint, DamagedFileError
from penstock.state.manifest import Change, Manifest, Section, Shard, StoreKey, TableEntry, counting, manifest_path

PARTITION_FOLDERS = "PENSTOCK_PARTITION_FOLDERS"


@dataclass(frozen=True)
class Problem:
    """A problem with a file.

    Parameters
    ----------
    error_class
        Error that the query would fail with.
    file
        Path of the file, relative to the query's Penstock directory.
    at_byte
        Position in the file, None if a position is not meaningful.
    what
        What was found, and which state it affects.
    needed
        True if the state of a kept batch is lost, wrong, or hidden from readers. False if nothing needs the file.
    """

    error_class: str
    file: str
    at_byte: int | None
    what: str
    needed: bool = True

    @property
    def is_damage(self) -> bool:
        """Whether the state itself is lost or wrong."""
        return self.needed and self.error_class != PARTITION_FOLDERS


@dataclass
class Verification:
    """What was read, and the problems that were found."""

    files: int = 0
    sections: int = 0
    problems: list[Problem] = field(default_factory=list)

    def failed(self, error: DamagedFileError, needed: bool = True, consequence: str = "") -> None:
        """Record a file that cannot be used; `consequence` says what follows from that."""
        what = f"{error.what}; {consequence}" if consequence else error.what
        problem = Problem(error.error_class, error.path, error.at_byte, what, needed)
        if problem not in self.problems:
            self.problems.append(problem)

    def wrong(self, file: str, what: str) -> None:
        """Record a file that can be read but has contradictory content."""
        self.problems.append(Problem("PENSTOCK_CORRUPT_FILE", file, None, what))


def verify(checkpoint: Checkpoint) -> Verification:
    """Read every file, check all checksums, and check that files and batches agree with each other.

    A running query may delete files that it no longer needs. That is not reported as damage.
    """
    found = Verification()
    # This comes first, because a running query commits further batches meanwhile.
    committed = checkpoint.committed_batch()
    shard_count = _shard_count(checkpoint, found)
    _routing_versions(checkpoint, found, shard_count)
    oldest = checkpoint.retained_from()
    kept, superseded = _manifests(checkpoint, found, shard_count, oldest)
    _sections(checkpoint, found, list(kept.values()), superseded)
    _steps(checkpoint, found, kept, oldest)
    _partitions(checkpoint, found, kept)
    if committed is not None and committed == checkpoint.committed_batch():
        _committed(found, sorted({batch for batch, _ in kept}), committed)
    return found


def _committed(found: Verification, batches: list[int], committed: int) -> None:
    """Check that the state of the batch that Spark committed last exists, because the query continues from it."""
    if committed in batches:
        return
    if max(batches, default=-1) < committed:
        what = (
            "it has no manifest, so the query cannot continue. "
            "Restore the file, or delete the entries of offsets and commits later than the newest manifest"
        )
    else:
        what = (
            f"there is state only of later batches, from {min(batches)} on, so the query cannot continue. "
            "The checkpoint was copied while it was written, or rewound by more batches than are kept. "
            "Copy it again while the query is stopped"
        )
    found.problems.append(
        Problem(
            "PENSTOCK_STATE_MISSING",
            f"manifests/{committed}.*",
            None,
            f"Spark has committed batch {committed}, but {what}",
        )
    )


def _shard_count(checkpoint: Checkpoint, found: Verification) -> int | None:
    found.files += 1
    try:
        description = checkpoint.description()
    except DamagedFileError as error:
        found.failed(error)
        return None
    query_id = checkpoint.query_id()
    if description.query_id and query_id and description.query_id != query_id:
        what = (
            f"the state belongs to query {description.query_id}, the checkpoint to another query, {query_id}. "
            "Put the state back into its own checkpoint"
        )
        found.problems.append(Problem("PENSTOCK_OTHER_QUERY", "FORMAT", None, what))
    return description.shard_count


def _routing_versions(checkpoint: Checkpoint, found: Verification, shard_count: int | None) -> None:
    for number in checkpoint.routing_version_numbers():
        found.files += 1
        try:
            routing_version = checkpoint.routing_version(number)
        except DamagedFileError as error:
            found.failed(error)
            continue
        if shard_count not in (None, routing_version.shard_count):
            found.wrong(
                f"epochs/{number}", f"it has {routing_version.shard_count} shards, but the query has {shard_count}"
            )


def _manifests(
    checkpoint: Checkpoint, found: Verification, shard_count: int | None, oldest: int
) -> tuple[dict[tuple[int, int], Manifest], list[Manifest]]:
    """Read all manifests; return those that count by batch and generation, newest first, and the others."""
    kept: dict[tuple[int, int], Manifest] = {}
    superseded = []
    for batch, generations in reversed(checkpoint.manifests().items()):
        counted = counting(generations, (after for after in kept.values() if after.batch == batch + 1))
        for generation in generations:
            is_kept = batch >= oldest and generation in counted
            found.files += 1
            try:
                manifest = checkpoint.manifest(batch, generation)
            except DamagedFileError as error:
                if error.error_class != "PENSTOCK_MISSING_FILE":
                    found.failed(error, is_kept, f"the state of batch {batch} cannot be read" if is_kept else "")
                continue
            if is_kept:
                kept[batch, generation] = manifest
                for what in _contradictions(manifest, shard_count):
                    found.wrong(manifest_path(batch, generation), what)
            else:
                superseded.append(manifest)
    return kept, superseded


def _contradictions(manifest: Manifest, shard_count: int | None) -> Iterator[str]:
    if shard_count not in (None, manifest.shard_count):
        yield f"it has {manifest.shard_count} shards, but the query has {shard_count}"
    for key, shards in manifest.stores.items():
        for number, shard in enumerate(shards):
            versions = [part.version for part in shard.parts]
            if versions != sorted(set(versions)):
                yield f"{_store(key)}, shard {number}: versions {versions} are not in order"
            if shard.version > manifest.batch + 1:
                yield f"{_store(key)}, shard {number}: version {shard.version} is later than the batch"


def _sections(checkpoint: Checkpoint, found: Verification, kept: list[Manifest], superseded: list[Manifest]) -> None:
    wanted: dict[str, dict[TableEntry, int]] = {}
    for manifest in kept:
        for entry in manifest.entries():
            wanted.setdefault(entry.section.path, {})[entry] = manifest.batch
    for path, entries in sorted(wanted.items()):
        table = [] if path.startswith("manifests/") else _table(checkpoint, found, path, entries)
        if table is None:
            continue
        for entry, batch in entries.items():
            found.sections += 1
            problem = _section(checkpoint, entry.section)
            if problem is not None and not _deleted_since(checkpoint, problem, batch):
                found.failed(problem, True, f"{_store(entry.store)}, shard {entry.shard} of batch {batch} is lost")
        _unneeded(checkpoint, found, [entry for entry in table if entry not in entries])
    # Other manifests may need only some of the sections in a manifest's payload.
    for manifest in superseded:
        path = manifest_path(manifest.batch, manifest.generation)
        own = [entry for entry in manifest.entries() if entry.section.path == path]
        _unneeded(checkpoint, found, [entry for entry in own if entry not in wanted.get(path, {})])
    for path in sorted(checkpoint.all_files()):
        if path.startswith(("changelogs/", "snapshots/")) and path not in wanted:
            _unneeded(checkpoint, found, _table(checkpoint, found, path, {}) or [])


def _table(
    checkpoint: Checkpoint, found: Verification, path: str, needed: dict[TableEntry, int]
) -> list[TableEntry] | None:
    """Read a file's section table; return None if the file does not exist.

    Sections are found without the table, so they are checked even if the table is damaged.
    """
    found.files += 1
    newest = max(needed.values(), default=-1)
    try:
        table = checkpoint.table(path)
    except DamagedFileError as error:
        missing = error.error_class == "PENSTOCK_MISSING_FILE"
        if needed and not _deleted_since(checkpoint, error, newest):
            found.failed(error, True, f"{len({e.shard for e in needed})} shards up to batch {newest} need it")
        elif not needed and not missing:
            found.failed(error, needed=False)
        return None if missing else []
    for entry in needed.keys() - set(table):
        found.wrong(
            path, f"it has no section of {_store(entry.store)}, shard {entry.shard} where the manifest expects it"
        )
    return table


def _section(checkpoint: Checkpoint, section: Section) -> DamagedFileError | None:
    try:
        checkpoint.apply(section, {})
    except DamagedFileError as error:
        return error
    return None


def _deleted_since(checkpoint: Checkpoint, error: DamagedFileError, batch: int) -> bool:
    return error.error_class == "PENSTOCK_MISSING_FILE" and batch < checkpoint.retained_from()


def _unneeded(checkpoint: Checkpoint, found: Verification, entries: list[TableEntry]) -> None:
    for entry in entries:
        found.sections += 1
        problem = _section(checkpoint, entry.section)
        if problem is not None and problem.error_class != "PENSTOCK_MISSING_FILE":
            found.failed(problem, needed=False)


def _steps(checkpoint: Checkpoint, found: Verification, kept: dict[tuple[int, int], Manifest], oldest: int) -> None:
    for (batch, generation), after in kept.items():
        if (after.base_generation is None) != (batch == 0):
            found.wrong(
                manifest_path(batch, generation), f"batch {batch} cannot build on generation {after.base_generation}"
            )
        elif after.base_generation is not None and batch > oldest:
            before = kept.get((batch - 1, after.base_generation))
            if before is not None:
                _step(checkpoint, found, before, after)
            elif (
                after.base_generation not in checkpoint.manifests().get(batch - 1, ())
                and batch > checkpoint.retained_from()
            ):
                base = manifest_path(batch - 1, after.base_generation)
                found.wrong(manifest_path(batch, generation), f"it builds on {base}, which does not exist")


def _partitions(checkpoint: Checkpoint, found: Verification, kept: dict[tuple[int, int], Manifest]) -> None:
    """Check that Spark's state reader, which counts folders, sees every state partition."""
    if not kept:
        return
    newest = kept[max(kept)]
    for operator in sorted({key.operator_id for key in newest.stores}):
        single = all(len(shards) == 1 for key, shards in newest.stores.items() if key.operator_id == operator)
        count = 1 if single else newest.shard_count
        existing = checkpoint.partitions(operator)
        if existing != set(range(count)):
            others = len([number for number in existing if number >= count])
            what = (
                f"{len(existing) - others} of {count} folders of state partitions exist"
                + (f", and {others} others" if others else "")
                + ": Spark's state reader would not read the state correctly. No state is lost. "
                + ("Remove the others" if others else "Start the query with this checkpoint, which recreates them")
            )
            found.problems.append(Problem(PARTITION_FOLDERS, f"../{operator}", None, what))


def _step(checkpoint: Checkpoint, found: Verification, before: Manifest, after: Manifest) -> None:
    """Check that a batch begins where the previous one ended, so that no change is lost or applied twice."""
    path = manifest_path(after.batch, after.generation)
    for key, shards in after.stores.items():
        if key not in before.stores:
            continue
        if before.pin_slots.get(key) != after.pin_slots.get(key):
            _moved(checkpoint, found, before, after, key)
        for number, current in enumerate(shards):
            previous = _previous(before, after, key, number)
            kept = Shard(current.snapshot, tuple(d for d in current.deltas if d.version <= after.batch))
            if kept.lineage != previous.lineage:
                found.wrong(
                    path,
                    f"{_store(key)}, shard {number} begins with version {kept.version} ({kept.lineage}), but batch "
                    f"{before.batch} ended with version {previous.version} ({previous.lineage})",
                )
            elif current.snapshot is not None and current.snapshot != previous.snapshot:
                _snapshot(checkpoint, found, _store(key) + f", shard {number}", previous, current.snapshot)


def _previous(before: Manifest, after: Manifest, key: StoreKey, number: int) -> Shard:
    """Return the shard that a shard builds on, which is empty if its pin slot had a different hash before."""
    slot = number - after.shard_count
    if slot >= 0:
        previous, current = before.pin_slots.get(key, ()), after.pin_slots.get(key, ())
        if current[slot] is None or previous[slot : slot + 1] != current[slot : slot + 1]:
            return Shard(None, ())
    return before.stores[key][number]


def _moved(checkpoint: Checkpoint, found: Verification, before: Manifest, after: Manifest, key: StoreKey) -> None:
    """Check that every key that was moved by pinning or unpinning left one shard and arrived in exactly one other."""
    received: dict[tuple[str, bytes], bytes] = {}
    left: dict[tuple[str, bytes], bytes] = {}
    removed: set[str] = set()
    duplicates = 0
    try:
        for number, current in enumerate(after.stores[key]):
            if current.version != after.batch + 1:
                continue
            moves = checkpoint.moves(current.parts[-1].section)
            removed |= moves.removed
            arrived = {(name, k): value for name, values in moves.arrived.items() for k, value in values.items()}
            duplicates += len(received.keys() & arrived.keys())
            received |= arrived
            if moves.left:
                content = checkpoint.content(_previous(before, after, key, number).parts)
                left |= {(name, k): content[name][k] for name, keys in moves.left.items() for k in keys}
        for number, previous in enumerate(before.stores[key][after.shard_count :], after.shard_count):
            if number >= len(after.stores[key]) or _previous(before, after, key, number) is not previous:
                content = checkpoint.content(previous.parts)
                left |= {(name, k): value for name, values in content.items() for k, value in values.items()}
    except DamagedFileError:
        return  # an unreadable section is already reported
    except KeyError as error:
        found.wrong(
            manifest_path(after.batch, after.generation),
            f"{_store(key)}: a key was moved out of a shard that did not have it, {error}",
        )
        return
    lost = sum(1 for at, value in left.items() if at[0] not in removed and received.get(at) != value)
    invented = sum(1 for at in received if at not in left)
    if lost or invented or duplicates:
        found.wrong(
            manifest_path(after.batch, after.generation),
            f"{_store(key)}: of {len(left)} keys moved out of shards {lost} were lost or changed, "
            f"{invented} were added without having moved, {duplicates} were added twice",
        )


def _snapshot(checkpoint: Checkpoint, found: Verification, shard: str, previous: Shard, snapshot: Change) -> None:
    """Check that a new snapshot equals the result of the changes that it replaces."""
    lineages = [part.lineage for part in previous.parts]
    if snapshot.lineage not in lineages:
        found.wrong(snapshot.section.path, f"{shard}: its lineage is not among those of the previous batch")
        return
    try:
        stored = _filled(checkpoint.content((snapshot,)))
        rebuilt = _filled(checkpoint.content(previous.parts[: lineages.index(snapshot.lineage) + 1]))
    except DamagedFileError:
        return  # an unreadable section is already reported
    if stored != rebuilt:
        found.wrong(
            snapshot.section.path,
            f"{shard}: it differs from the result of the changes up to version {snapshot.version}",
        )


def _filled(content: Content) -> Content:
    """Leave out empty families, which snapshots do not contain."""
    return {name: family for name, family in content.items() if family}


def _store(key: StoreKey) -> str:
    return f"store {key.store_name} of operator {key.operator_id}"
