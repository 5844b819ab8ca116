"""Show Penstock's state in a checkpoint, and verify it.

The command only reads, so a query may be running on the checkpoint. The exit status is 1 if `--verify` finds a problem
in files that are needed, and 2 if the checkpoint cannot be read.
"""

import argparse
import json
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

from penstock.api.printable import printable
from penstock.state.checkpoint import Checkpoint
from penstock.state.inspection import Inspection, ShardSummary, by_folder, inspect
from penstock.state.layout import PinSlots
from penstock.state.verification import Verification, verify


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("checkpoint", help="checkpointLocation of the query: a path, or a URI that pyarrow can open")
    parser.add_argument(
        "--verify",
        action="store_true",
        help="read every file, and check all checksums and that each batch continues the one before it",
    )
    parser.add_argument("--shards", action="store_true", help="list every shard")
    parser.add_argument("--json", action="store_true", help="print JSON, with every shard and file")


def run(arguments: argparse.Namespace) -> int:
    """Print the state of the checkpoint and the result of its verification."""
    checkpoint = Checkpoint(arguments.checkpoint)
    verification = verify(checkpoint) if arguments.verify else None
    problems = [] if verification is None else verification.problems
    # The content of damaged files cannot be counted.
    inspection = None if any(problem.is_damage for problem in problems) else inspect(checkpoint)
    if arguments.json:
        print(json.dumps(_as_json(inspection, verification), indent=2))
    else:
        print("\n".join(map(printable, _as_text(inspection, verification, arguments.shards))))
    return 1 if any(problem.needed for problem in problems) else 0


def _as_json(inspection: Inspection | None, verification: Verification | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if inspection is not None:
        manifest = inspection.manifest
        found = {
            "checkpoint": inspection.location,
            "shards": inspection.description.shard_count,
            "writtenBy": inspection.description.written_by,
            "queryId": inspection.description.query_id,
            "batch": None if manifest is None else manifest.batch,
            "generation": None if manifest is None else manifest.generation,
            "runId": None if manifest is None else str(manifest.run),
            "writtenAtMs": None if manifest is None else manifest.written_at_ms,
            "committedBatch": inspection.committed_batch,
            "batches": inspection.batches,
            "routingVersions": [
                {
                    "number": e.number,
                    "firstBatch": e.first_batch,
                    "shards": e.shard_count,
                    "tasks": e.tasks,
                    "perCore": sorted(e.per_core),
                    "pinned": {region: _hashes(pin_slots) for region, pin_slots in e.pin_slots.items()},
                }
                for e in inspection.routing_versions
            ],
            "stores": [
                {
                    "operatorId": store.operator_id,
                    "operator": store.operator,
                    "store": store.store,
                    "shards": [_shard_as_json(shard) for shard in store.shards],
                }
                for store in inspection.stores
            ],
            "files": [{"path": f.path, "bytes": f.bytes, "needed": f.needed} for f in inspection.files],
        }
    if verification is not None:
        found["verified"] = {
            "files": verification.files,
            "sections": verification.sections,
            "problems": [
                {"errorClass": p.error_class, "file": p.file, "atByte": p.at_byte, "what": p.what, "needed": p.needed}
                for p in verification.problems
            ],
        }
    return found


def _shard_as_json(shard: ShardSummary) -> dict[str, Any]:
    return {
        "shard": shard.shard,
        "keys": shard.keys,
        "bytes": shard.bytes,
        "version": shard.version,
        "lineage": str(shard.lineage),
        "snapshotVersion": shard.snapshot_version,
        "deltas": shard.deltas,
    }


def _as_text(inspection: Inspection | None, verification: Verification | None, every_shard: bool) -> list[str]:
    lines: list[str] = []
    if inspection is not None:
        lines += [*_head(inspection), "", *_stores(inspection)]
        if every_shard:
            lines += ["", *_shards(inspection)]
        lines += ["", *_files(inspection)]
    if verification is not None:
        lines += _verified(verification)
    return lines


def _head(inspection: Inspection) -> list[str]:
    manifest = inspection.manifest
    if manifest is None:
        state = "none: no batch has ended"
    else:
        state = (
            f"after batch {manifest.batch}, generation {manifest.generation}, written {_time(manifest.written_at_ms)}; "
            + ("Spark has committed " + _or_none(inspection.committed_batch, "batch "))
        )
    kept = f"batches {inspection.batches[0]} to {inspection.batches[-1]}" if inspection.batches else "none"
    return [
        f"checkpoint  {inspection.location}",
        f"state       {state}",
        f"kept        {kept}",
        f"shards      {inspection.description.shard_count}, written by {inspection.description.written_by}",
        *(
            f"routing version {e.number:<6}from batch {e.first_batch}: "
            + (
                ", ".join(_region(region, tasks, e.pin_slots[region]) for region, tasks in sorted(e.tasks.items()))
                or "no regions"
            )
            for e in inspection.routing_versions
        ),
    ]


def _time(ms: int) -> str:
    try:
        return f"{datetime.fromtimestamp(ms / 1000, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return f"{ms} ms after 1970, which is not a valid time"


def _region(region: int, tasks: int, pin_slots: PinSlots) -> str:
    pinned = f", {len(_hashes(pin_slots))} keys pinned" if pin_slots else ""
    return f"region {region} on {tasks} tasks{pinned}"


def _hashes(pin_slots: PinSlots) -> list[int]:
    return [hash_ for hash_ in pin_slots if hash_ is not None]


def _stores(inspection: Inspection) -> list[str]:
    rows = [("operator", "store", "shards", "keys", "bytes", "heaviest shard", "longest chain")]
    for store in inspection.stores:
        heaviest = max(store.shards, key=lambda shard: shard.bytes)
        rows.append(
            (
                f"{store.operator_id} {store.operator or ''}".strip(),
                store.store,
                f"{len(store.shards):,}",
                f"{sum(s.keys for s in store.shards):,}",
                f"{sum(s.bytes for s in store.shards):,}",
                f"{heaviest.shard}: {heaviest.keys:,} keys, {heaviest.bytes:,} bytes",
                f"{max(s.deltas for s in store.shards)} changes",
            )
        )
    return _aligned(rows)


def _shards(inspection: Inspection) -> list[str]:
    rows = [("operator", "store", "shard", "keys", "bytes", "version", "snapshot", "changes", "lineage")]
    rows += [
        (
            str(store.operator_id),
            store.store,
            str(s.shard),
            f"{s.keys:,}",
            f"{s.bytes:,}",
            str(s.version),
            _or_none(s.snapshot_version),
            str(s.deltas),
            str(s.lineage),
        )
        for store in inspection.stores
        for s in store.shards
    ]
    return _aligned(rows)


def _files(inspection: Inspection) -> list[str]:
    folders = ", ".join(f"{n:,} {name} ({size:,} bytes)" for name, (n, size) in by_folder(inspection.files).items())
    orphans = inspection.orphans
    lines = [f"files       {folders}"]
    if orphans:
        total = sum(file.bytes for file in orphans)
        lines.append(f"not needed  {len(orphans):,} files, {total:,} bytes: the query deletes them later")
        lines += [f"            {file.path}" for file in orphans]
    return lines


def _verified(verification: Verification) -> list[str]:
    read = f"verified    {verification.files:,} files, {verification.sections:,} sections: "
    in_needed = sum(problem.needed for problem in verification.problems)
    in_others = len(verification.problems) - in_needed
    result = "all files that are needed are intact" if in_needed == 0 else f"{in_needed:,} problems"
    lines = [read + result + (f"; {in_others:,} problems in files that are not needed" if in_others else "")]
    for p in sorted(verification.problems, key=lambda p: not p.needed):
        place = "" if p.at_byte is None else f", at byte {p.at_byte}"
        lines.append(f"            [{p.error_class}] {p.file}{place}: {p.what}" + ("" if p.needed else " (not needed)"))
    return lines


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _or_none(number: int | None, prefix: str = "") -> str:
    return "none" if number is None else f"{prefix}{number}"
