"""Readers of checkpoints are correct for intact ones and report every damage."""

import json
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from penstock import cli
from penstock.api.errors import PenstockError
from penstock.state import image, manifest, routing_version
from penstock.state.checkpoint import Checkpoint, DamagedFileError
from penstock.state.framing import MalformedDataError
from penstock.state.inspection import inspect
from penstock.state.storage import ArrowStorage, LocalStorage, storage_of
from penstock.state.verification import verify
from written_checkpoint import QUERY, SHARDS, Writer, Written, change_set

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


def test_every_flipped_bit_and_every_lost_byte_is_found(tmp_path):
    write(tmp_path)
    for path in files(tmp_path):
        intact = path.read_bytes()
        name = str(path.relative_to(state(tmp_path)))
        damaged = [intact[:i] + bytes([intact[i] ^ 1 << i % 8]) + intact[i + 1 :] for i in range(len(intact))]
        damaged += [intact[:i] for i in range(len(intact))]
        for data in damaged:
            path.write_bytes(data)
            problems = verify(Checkpoint(str(tmp_path))).problems
            assert [p for p in problems if p.file == name and p.needed], f"{name}: not found"
        path.write_bytes(intact)
    assert verify(Checkpoint(str(tmp_path))).problems == []


def test_a_missing_file_is_found(tmp_path):
    write(tmp_path)
    for path in files(tmp_path):
        name = str(path.relative_to(state(tmp_path)))
        if name.startswith(("changelogs", "snapshots")):
            intact = path.read_bytes()
            path.unlink()
            problems = verify(Checkpoint(str(tmp_path))).problems
            assert {(p.file, p.error_class) for p in problems} == {(name, "PENSTOCK_MISSING_FILE")}
            path.write_bytes(intact)


def test_a_missing_newest_manifest_is_found(tmp_path):
    (state(write(tmp_path)) / "manifests" / "2.0").unlink()
    (problem,) = verify(Checkpoint(str(tmp_path))).problems
    assert problem.error_class == "PENSTOCK_STATE_MISSING"
    assert "batch 2" in problem.what


def test_a_committed_batch_whose_state_is_no_longer_kept_is_found(tmp_path):
    writer = Writer(tmp_path)
    for batch in range(4):
        writer.retained_from = max(0, batch - 1)
        writer.batch(batch, {0: {b"key": b"%d" % batch}})
    assert verify(Checkpoint(str(tmp_path))).problems == []
    # A copy looks like this if its commits were copied before a cleanup, and its state after it.
    for batch in (2, 3):
        (tmp_path / "commits" / str(batch)).unlink()
    for batch in (0, 1):
        (state(tmp_path) / "manifests" / f"{batch}.0").unlink()
    (problem,) = verify(Checkpoint(str(tmp_path))).problems
    assert (problem.error_class, problem.file) == ("PENSTOCK_STATE_MISSING", "manifests/1.*")
    assert "from 2 on" in problem.what


def test_batches_committed_during_verification_are_not_a_problem(tmp_path):
    (state(write(tmp_path)) / "manifests" / "2.0").unlink()
    commits = iter((2, 3))

    class Running(Checkpoint):
        def committed_batch(self) -> int:
            return next(commits)

    assert verify(Running(str(tmp_path))).problems == []


def test_missing_partition_folders_are_found_and_the_state_is_still_shown(tmp_path, capsys):
    write(tmp_path)
    (tmp_path / "state" / "0" / "2" / "_penstock").unlink()
    assert verify(Checkpoint(str(tmp_path))).problems == []
    (tmp_path / "state" / "0" / "2").rmdir()
    (problem,) = verify(Checkpoint(str(tmp_path))).problems
    assert (problem.error_class, problem.file) == ("PENSTOCK_PARTITION_FOLDERS", "../0")
    assert "3 of 4 folders" in problem.what
    assert cli.main(["inspect", str(tmp_path), "--verify"]) == 1
    shown = capsys.readouterr().out
    assert "1 problems" in shown
    assert "heaviest shard" in shown


def test_surplus_partition_folders_are_found(tmp_path):
    write(tmp_path)
    (tmp_path / "state" / "0" / "4").mkdir()
    (problem,) = verify(Checkpoint(str(tmp_path))).problems
    assert "4 of 4 folders of state partitions exist, and 1 others" in problem.what
    assert "Remove the others" in problem.what


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


def test_swapped_files_are_found(tmp_path):
    write(tmp_path)
    for folder in ("changelogs", "manifests"):
        first, second, *_ = sorted((state(tmp_path) / folder).iterdir())
        a, b = first.read_bytes(), second.read_bytes()
        first.write_bytes(b)
        second.write_bytes(a)
        wrong = {p.file for p in verify(Checkpoint(str(tmp_path))).problems}
        assert {f"{folder}/{first.name}", f"{folder}/{second.name}"} <= wrong
        first.write_bytes(a)
        second.write_bytes(b)


def test_a_lost_change_and_a_wrong_snapshot_are_found_despite_valid_checksums(tmp_path):
    lost = Writer(tmp_path / "lost")
    lost.batch(0, {0: {b"a": b"1"}})
    lost.chains[0].clear()
    lost.batch(1, {0: {b"b": b"1"}})
    (problem,) = verify(Checkpoint(str(lost.root))).problems
    assert problem.file == "manifests/1.0"
    assert "batch 0 ended with version 1" in problem.what

    wrong = Writer(tmp_path / "wrong")
    wrong.batch(0, {3: {b"a": b"1"}})
    snapshot = wrong.snapshot(3, {b"a": b"2"})
    wrong.batch(1, {3: {b"b": b"1"}})
    (problem,) = verify(Checkpoint(str(wrong.root))).problems
    assert problem.file == snapshot
    assert "shard 3" in problem.what


def pinned(root, moved, changes=None):
    """Write a batch with two keys in shard 1, and a batch in which hash 9 gets shard 4."""
    writer = Writer(root)
    writer.batch(0, {1: {b"a": b"1", b"b": b"2"}})
    writer.lay_out(9)
    writer.batch(1, changes or {}, moved)
    return writer


def problems(writer):
    return [p.what for p in verify(Checkpoint(str(writer.root))).problems]


def test_keys_that_move_between_shards_are_accepted(tmp_path):
    writer = pinned(tmp_path, {1: {b"a": None}, 4: {b"a": b"1"}}, {4: {b"a": b"3"}})
    writer.lay_out(10)
    # Another hash takes the pin slot: all keys that were there return to their base shard.
    writer.batch(2, {}, {1: {b"a": b"3"}, 4: {}})
    writer.lay_out()
    writer.batch(3, {1: {b"c": b"4"}})
    assert problems(writer) == []


@pytest.mark.parametrize(
    ("moved", "found"),
    [
        ({1: {b"a": None}}, "of 1 keys moved out of shards 1 were lost or changed"),
        ({1: {b"a": None}, 4: {b"a": b"2"}}, "of 1 keys moved out of shards 1 were lost or changed"),
        ({4: {b"a": b"1"}}, "of 0 keys moved out of shards 0 were lost or changed, 1 were added without having moved"),
        ({1: {b"a": None}, 2: {b"a": b"1"}, 4: {b"a": b"1"}}, "0 were added without having moved, 1 were added twice"),
        ({1: {b"z": None}}, "a key was moved out of a shard that did not have it"),
    ],
)
def test_keys_that_a_move_loses_or_duplicates_are_found(tmp_path, moved, found):
    (problem,) = problems(pinned(tmp_path, moved))
    assert found in problem


def test_a_pin_that_ends_without_returning_its_keys_is_found(tmp_path):
    writer = pinned(tmp_path, {1: {b"a": None}, 4: {b"a": b"1"}})
    writer.lay_out()
    writer.batch(2, {0: {b"c": b"1"}})
    (problem,) = problems(writer)
    assert "of 1 keys moved out of shards 1 were lost or changed" in problem


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


def test_damage_that_only_a_superseded_manifest_refers_to_is_not_needed(tmp_path):
    writer = Writer(tmp_path)
    writer.change(0, {0: {b"a": b"1"}}, UUID(int=1))
    section = change_set({b"b": b"1"})
    writer.chains[1].append(Written(1, UUID(int=2), b"\3\0\0", 0, section))
    writer.manifest(0, payload=section)
    writer.chains[1].clear()
    writer.manifest(0, generation=1)
    assert verify(Checkpoint(str(tmp_path))).problems == []
    path = state(tmp_path) / "manifests" / "0.0"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    (problem,) = verify(Checkpoint(str(tmp_path))).problems
    assert (problem.file, problem.needed) == ("manifests/0.0", False)


def test_state_of_another_query_is_found(tmp_path):
    metadata = write(tmp_path) / "metadata"
    assert verify(Checkpoint(str(tmp_path))).problems == []
    metadata.write_text(json.dumps({"id": QUERY}))
    assert verify(Checkpoint(str(tmp_path))).problems == []
    metadata.write_text(json.dumps({"id": "another"}))
    (problem,) = verify(Checkpoint(str(tmp_path))).problems
    assert (problem.error_class, problem.file) == ("PENSTOCK_OTHER_QUERY", "FORMAT")
    assert QUERY in problem.what
    assert "another" in problem.what


def test_a_newer_format_is_refused(tmp_path):
    path = state(write(tmp_path)) / "manifests" / "2.0"
    data = bytearray(path.read_bytes())
    data[8] = 3
    path.write_bytes(data)
    with pytest.raises(DamagedFileError, match="a newer one") as caught:
        inspect(Checkpoint(str(tmp_path)))
    assert caught.value.error_class == "PENSTOCK_NEWER_FORMAT"


READERS = {
    "manifests": manifest.decode,
    "changelogs": lambda body: manifest.decode_table(body, "changelogs/0-x"),
    "snapshots": image.decode,
    "epochs": routing_version.decode_routing_version,
    "FORMAT": routing_version.decode_description,
}


@pytest.fixture(scope="module")
def bodies(tmp_path_factory) -> dict[str, bytes]:
    root = write(tmp_path_factory.mktemp("intact"))
    found = {p.relative_to(state(root)).parts[0]: p.read_bytes()[20:] for p in files(root)}
    checkpoint = Checkpoint(str(root))
    (entry,) = checkpoint.table(next(p for p in checkpoint.all_files() if p.startswith("snapshots/")))
    return {**found, "snapshots": checkpoint.section(entry.section)}


@pytest.mark.parametrize("kind", READERS)
@settings(max_examples=400, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_readers_of_damaged_bytes_return_a_result_or_raise_their_own_error(kind, bodies, data):
    body = bytearray(bodies[kind])
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(body)))
    refused = refusal(READERS[kind], bytes(body[:cut]))
    assert refused is None or 0 <= refused.at_byte <= cut


def refusal(read, data: bytes) -> MalformedDataError | None:
    try:
        read(data)
    except MalformedDataError as error:
        return error
    return None


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


def test_a_batch_may_continue_from_an_earlier_generation(tmp_path):
    writer = Writer(tmp_path)
    writer.batch(0, {0: {b"a": b"1"}})
    first = [list(chain) for chain in writer.chains]
    writer.chains[0].clear()
    writer.change(0, {0: {b"a": b"1"}}, UUID(int=77))
    writer.manifest(0, generation=1)
    writer.chains = first
    writer.batch(1, {0: {b"b": b"1"}})
    assert verify(Checkpoint(str(tmp_path))).problems == []
    assert inspect(Checkpoint(str(tmp_path))).orphans == []

    manifests = state(tmp_path) / "manifests"
    (manifests / "0.0").unlink()
    (problem,) = verify(Checkpoint(str(tmp_path))).problems
    assert problem.file == "manifests/1.0"
    assert "manifests/0.0, which does not exist" in problem.what

    writer.manifest(0)
    (manifests / "1.0").unlink()
    writer.manifest(1, base=1)
    (problem,) = verify(Checkpoint(str(tmp_path))).problems
    assert "batch 0 ended with version 1" in problem.what


def a_long_history(root: Path) -> None:
    """Write batches of which 3 to 5 are retained. Manifest 2 is kept for its payload, and names deleted files."""
    writer = Writer(root)
    section = change_set({b"c": b"1"})
    for batch in range(6):
        writer.retained_from = max(0, batch - 2)
        if batch == 2:
            writer.change(2, {0: {b"a": b"2"}}, UUID(int=1002))
            writer.chains[1].append(Written(3, UUID(int=1002), b"\3\2\0", 0, section))
            writer.manifest(2, payload=section)
            writer.chains[1][-1].offset = len((state(root) / "manifests" / "2.0").read_bytes()) - len(section)
            writer.snapshot(0, {b"a": b"2"})
        else:
            writer.batch(batch, {0: {b"a": b"%d" % batch}, 2: {b"b": b"1"}})
        if batch == 1:
            deleted = [writer.snapshot(0, {b"a": b"1"})]
            writer.snapshot(2, {b"b": b"1"})
    deleted += ["manifests/0.0", "manifests/1.0", *(f"changelogs/{b}-{UUID(int=1000 + b)}" for b in (0, 1, 2))]
    for path in deleted:
        (state(root) / path).unlink()


def test_older_manifests_are_kept_for_their_payloads(tmp_path):
    a_long_history(tmp_path)
    assert verify(Checkpoint(str(tmp_path))).problems == []
    found = inspect(Checkpoint(str(tmp_path)))
    assert found.batches == [3, 4, 5]
    assert found.orphans == []


@pytest.mark.parametrize("missing", ["manifests/3.0", "manifests/4.0", "manifests/2.0"])
def test_a_missing_manifest_that_is_needed_is_found(missing, tmp_path):
    a_long_history(tmp_path)
    (state(tmp_path) / missing).unlink()
    problems = verify(Checkpoint(str(tmp_path))).problems
    assert any(missing in p.file or missing in p.what for p in problems)
    assert all(p.needed for p in problems)


def test_damage_of_a_payload_that_a_retained_batch_needs_is_found(tmp_path):
    a_long_history(tmp_path)
    path = state(tmp_path) / "manifests" / "2.0"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    problems = verify(Checkpoint(str(tmp_path))).problems
    assert {(p.file, p.needed) for p in problems} == {("manifests/2.0", True)}
