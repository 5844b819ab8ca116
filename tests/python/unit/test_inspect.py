"""What `penstock inspect` shows of an intact checkpoint, and how a checkpoint is named."""

import json
from pathlib import Path
from uuid import UUID

import pytest
from example_checkpoint import CONTENT, state, write
from penstock import cli
from penstock.api.errors import PenstockError
from penstock.state.checkpoint import Checkpoint, DamagedFileError
from penstock.state.inspection import inspect
from penstock.state.storage import ArrowStorage, LocalStorage, storage_of
from penstock.state.verification import verify
from written_checkpoint import SHARDS, Writer


def test_inspect_shows_the_content_of_every_shard(tmp_path):
    found = inspect(Checkpoint(str(write(tmp_path))))
    assert found.batches == [0, 1, 2]
    assert (found.manifest.batch, found.committed_batch) == (2, 2)
    assert [e.tasks for e in found.routing_versions] == [{0: 2}]
    (store,) = found.stores
    sizes = {n: (len(c), sum(len(k) + len(v) for k, v in c.items())) for n, c in CONTENT.items()}
    assert {s.shard: (s.keys, s.bytes) for s in store.shards} == sizes
    assert [(s.version, s.snapshot_version, s.deltas) for s in store.shards] == [
        (3, 2, 1),
        (3, None, 2),
        (2, None, 1),
        (0, None, 0),
    ]
    assert found.orphans == []
    assert verify(Checkpoint(str(tmp_path))).problems == []


FOREIGN = [".DS_Store", "_SUCCESS", "Thumbs.db", "0.0.crc", ".0.0.tmp", "1.0 (copy)", "0.part", "5-of another program"]


def test_files_of_other_programs_are_ignored(tmp_path):
    write(tmp_path)
    expected = inspect(Checkpoint(str(tmp_path)))
    for folder in [tmp_path, *(p for p in tmp_path.rglob("*") if p.is_dir())]:
        for name in FOREIGN:
            (folder / name).write_text("of another program")
    checkpoint = Checkpoint(str(tmp_path))
    assert inspect(checkpoint) == expected
    assert verify(checkpoint).problems == []


@pytest.mark.parametrize("form", ["{}/", "file:{}", "file://{}/", "{}/../link", "{}/../link/"])
def test_a_checkpoint_can_be_named_by_a_path_a_uri_or_a_link(tmp_path, form):
    root = write(tmp_path / "checkpoint")
    (tmp_path / "link").symlink_to(root)
    checkpoint = Checkpoint(form.format(root))
    assert verify(checkpoint).problems == []
    assert inspect(checkpoint).manifest == inspect(Checkpoint(str(root))).manifest


def test_a_trailing_slash_is_removed_from_a_path(tmp_path):
    storage = ArrowStorage(f"file://{write(tmp_path)}/")
    assert storage.root == f"file://{tmp_path}"
    assert storage._path == str(tmp_path)
    assert "FORMAT" in [f.name for f in storage.files("state/_penstock")]


def test_files_that_no_retained_batch_needs_are_orphans(tmp_path):
    writer = Writer(tmp_path)
    writer.batch(0, {0: {b"a": b"1"}})
    orphan = Path(f"changelogs/0-{UUID(int=5)}")
    (named,) = (state(tmp_path) / "changelogs").iterdir()
    (state(tmp_path) / orphan).write_bytes(named.read_bytes())
    writer.manifest(0, generation=1)
    found = inspect(Checkpoint(str(tmp_path)))
    assert {f.path for f in found.orphans} == {str(orphan), "manifests/0.0"}
    (state(tmp_path) / orphan).write_bytes(named.read_bytes()[:-1])
    (problem,) = verify(Checkpoint(str(tmp_path))).problems
    assert (problem.file, problem.needed) == (str(orphan), False)
    assert cli.main(["inspect", str(tmp_path), "--verify"]) == 0


def test_a_newer_format_is_refused(tmp_path):
    path = state(write(tmp_path)) / "manifests" / "2.0"
    data = bytearray(path.read_bytes())
    data[8] = 3
    path.write_bytes(data)
    with pytest.raises(DamagedFileError, match="a newer one") as caught:
        inspect(Checkpoint(str(tmp_path)))
    assert caught.value.error_class == "PENSTOCK_NEWER_FORMAT"


def test_folders_without_penstock_state_are_refused_with_the_reason(tmp_path):
    def refused() -> str:
        with pytest.raises(PenstockError) as caught:
            Checkpoint(str(tmp_path))
        assert caught.value.error_class == "PENSTOCK_NO_STATE"
        return caught.value.detail

    assert "not the checkpoint" in refused()
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").touch()
    (tmp_path / "commits").mkdir()
    assert "without state" in refused()
    (tmp_path / "state" / "0").mkdir(parents=True)
    assert "another store" in refused()


def test_a_uri_is_read_like_a_path(tmp_path):
    write(tmp_path)
    assert isinstance(storage_of(f"file://{tmp_path}"), LocalStorage)
    local, arrow = LocalStorage(tmp_path), ArrowStorage(tmp_path.as_uri())
    for folder in ("", "state/_penstock", "state/_penstock/manifests", "none"):
        assert local.files(folder) == arrow.files(folder)
        assert local.folders(folder) == arrow.folders(folder)
    path = "state/_penstock/manifests/2.0"
    for offset, length in ((0, None), (0, 20), (20, 5), (20, 10_000), (10_000, 5)):
        assert local.read(path, offset, length) == arrow.read(path, offset, length)
    with pytest.raises(FileNotFoundError):
        arrow.read("none")
    with pytest.raises(PenstockError, match="PENSTOCK_UNREADABLE_CHECKPOINT"):
        storage_of("nothing://host/path")


def test_the_command_shows_and_verifies_a_checkpoint(tmp_path, capsys):
    write(tmp_path)
    assert cli.main(["inspect", str(tmp_path), "--verify", "--shards"]) == 0
    printed = capsys.readouterr().out
    assert "after batch 2" in printed
    assert "all files that are needed are intact" in printed
    assert str(UUID(int=1002)) in printed
    assert cli.main(["inspect", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [s["keys"] for s in found["stores"][0]["shards"]] == [len(CONTENT[n]) for n in range(SHARDS)]
    assert all(f["needed"] for f in found["files"])

    snapshot = next((state(tmp_path) / "snapshots").iterdir())
    snapshot.write_bytes(snapshot.read_bytes()[:-1] + b"?")
    assert cli.main(["inspect", str(tmp_path), "--verify"]) == 1
    assert f"snapshots/{snapshot.name}, at byte" in capsys.readouterr().out
    assert cli.main(["inspect", str(tmp_path), "--verify", "--json"]) == 1
    (problem,) = json.loads(capsys.readouterr().out)["verified"]["problems"]
    assert problem["errorClass"] == "PENSTOCK_CORRUPT_FILE"
    assert cli.main(["inspect", str(tmp_path)]) == 2
    assert "PENSTOCK_CORRUPT_FILE" in capsys.readouterr().err
