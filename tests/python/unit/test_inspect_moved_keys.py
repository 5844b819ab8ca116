"""Keys that a pinned hash moves between shards are neither lost nor duplicated."""

import pytest
from penstock.state.checkpoint import Checkpoint
from penstock.state.verification import verify
from written_checkpoint import Writer


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
