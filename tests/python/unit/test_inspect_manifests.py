"""Which manifests a checkpoint needs, and what of them may be missing or damaged."""

from pathlib import Path
from uuid import UUID

import pytest
from example_checkpoint import state, write
from penstock.state.checkpoint import Checkpoint
from penstock.state.inspection import inspect
from penstock.state.verification import verify
from written_checkpoint import Writer, Written, change_set


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
