"""An intact checkpoint of three batches over four shards, and where its files are."""

from pathlib import Path

from written_checkpoint import Writer

CONTENT = {0: {b"a": b"1", b"c": b"4444"}, 1: {}, 2: {b"b": b"22"}, 3: {}}


def write(root: Path) -> Path:
    """Write three batches over three of four shards. The second ends with a snapshot of shard 0."""
    writer = Writer(root)
    writer.batch(0, {0: {b"a": b"0", b"x": b"9"}, 1: {b"y": b"7"}})
    writer.batch(1, {0: {b"a": b"1", b"x": None}, 2: {b"b": b"22"}})
    writer.snapshot(0, {b"a": b"1"})
    writer.batch(2, {0: {b"c": b"4444"}, 1: {b"y": None}})
    return root


def state(root: Path) -> Path:
    return root / "state" / "_penstock"


def files(root: Path) -> list[Path]:
    return sorted(p for p in state(root).rglob("*") if p.is_file())
