"""Every damage of a checkpoint's files is found, and no reader fails because of it."""

import json

import pytest
from example_checkpoint import files, state, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from penstock import cli
from penstock.state import image, manifest, routing_version
from penstock.state.checkpoint import Checkpoint
from penstock.state.framing import MalformedDataError
from penstock.state.verification import verify
from written_checkpoint import QUERY, Writer


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
