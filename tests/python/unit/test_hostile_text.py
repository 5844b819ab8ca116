"""Untrusted keys of a stream and files of a checkpoint neither control the terminal nor stop a command."""

import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.api.printable import printable
from penstock.cli import main
from penstock.monitor.document import read
from penstock.monitor.view import view
from penstock.state.framing import Kind
from rich.console import Console
from written_checkpoint import QUERY, SHARDS, Writer, frame, string, varint

STATUS = (Path(__file__).parent / "data" / "status.json").read_text()
HOSTILE = "\x1b]52;c;aGk=\x07\x1b[2Jname\x9b31m\u202egnp\nforged"


@given(st.text())
def test_printable_text_has_no_control_characters(text: str) -> None:
    shown = printable(text)
    assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or 0xD800 <= ord(c) < 0xE000 for c in shown)
    assert printable(shown) == shown


def test_text_of_any_language_is_not_changed() -> None:
    for text in ("", "a key", "Zürich", "東京", "e\u0301", "\U0001f600", "50 %"):
        assert printable(text) == text
    assert printable("two\nlines", keep="\n") == "two\nlines"
    assert printable("\x1b[2J\u202e\ud800") == r"\x1b[2J\u202e\ud800"


def test_top_escapes_keys_and_names_of_a_stream() -> None:
    def hostile(value: object) -> object:
        if isinstance(value, str):
            return HOSTILE + value if not value.startswith("20") else value
        if isinstance(value, list):
            return [hostile(item) for item in value]
        return {name: hostile(item) for name, item in value.items()} if isinstance(value, dict) else value

    status = json.loads(STATUS)
    hostile_status = {**status, "queries": hostile(status["queries"])}
    console = Console(width=200, force_terminal=False)
    with console.capture() as capture:
        console.print(view(read(json.dumps(hostile_status))))
    drawn = capture.get()
    assert "x1b]52" in drawn
    assert not set(drawn) & {"\x1b", "\x07", "\x9b", "\u202e"}


def written(root: Path) -> Writer:
    writer = Writer(root)
    writer.batch(0, {0: {b"a": b"0"}})
    return writer


def inspected(root: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    main(["inspect", str(root), *options])
    shown = capsys.readouterr()
    return shown.out + shown.err


def test_inspect_escapes_names_in_a_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    writer = written(tmp_path)
    writer.write("FORMAT", frame(Kind.FORMAT, varint(SHARDS) + string(HOSTILE) + string(QUERY)))
    operator = tmp_path / "state" / "0" / "_metadata"
    operator.mkdir(parents=True)
    named = {"operatorInfo": {"operatorId": 0, "operatorName": HOSTILE}}
    (operator / "metadata").write_text("v1\n" + json.dumps(named))
    shown = inspected(tmp_path, capsys, "--shards", "--verify")
    assert shown.count(r"\x1b]52;c;aGk=") == 2
    assert not set(shown) & {"\x1b", "\x07", "\x9b", "\u202e"}
    assert not any(line.startswith("forged") for line in shown.splitlines())


def test_inspect_ignores_pipes_and_links_in_a_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path)
    state = tmp_path / "state" / "_penstock"
    for path in (
        state / "manifests" / "1.0",
        state / "epochs" / "1",
        tmp_path / "metadata",
        tmp_path / "commits" / "1",
    ):
        os.mkfifo(path)
    (state / "snapshots").mkdir(exist_ok=True)
    loop = state / "snapshots" / "2-00000000-0000-0000-0000-000000000000"
    loop.symlink_to(loop)
    began = time.monotonic()
    assert "all files that are needed are intact" in inspected(tmp_path, capsys, "--verify")
    # Opening a pipe blocks until somebody writes to it.
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("name", ["²", "٣", "9" * 5000, "-1", "1_0", "+1"])
def test_inspect_ignores_names_that_look_like_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    written(tmp_path)
    for folder in ("state/_penstock/epochs", "state/_penstock/manifests", "commits", "state", "state/0"):
        file_name = name + ".0" if folder.endswith("manifests") else name
        if len(file_name) < 256:
            place = tmp_path / folder / file_name
            if folder in ("state", "state/0"):
                place.mkdir()
            else:
                place.write_bytes(b"?")
    assert "all files that are needed are intact" in inspected(tmp_path, capsys, "--verify")


@pytest.mark.parametrize("metadata", ["[]", "7", '{"id": []}', "[" * 100_000, "\udcff", '{"id"'])
def test_inspect_accepts_metadata_of_another_shape(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], metadata: str
) -> None:
    written(tmp_path)
    text = metadata.encode("utf-8", "surrogateescape")
    (tmp_path / "metadata").write_bytes(text)
    operator = tmp_path / "state" / "0" / "_metadata"
    operator.mkdir(parents=True)
    (operator / "metadata").write_bytes(b"v1\n" + text)
    assert "0" in inspected(tmp_path, capsys)


def test_an_invalid_time_is_shown_as_invalid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    writer = written(tmp_path)
    writer.written_at_ms = (1 << 64) - 1
    writer.batch(1, {0: {b"a": b"1"}})
    assert f"{(1 << 64) - 1} ms after 1970, which is not a valid time" in inspected(tmp_path, capsys)


def test_shards_that_share_bytes_of_a_file_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    writer = written(tmp_path)
    writer.chains = [writer.chains[0]] * SHARDS
    writer.manifest(0)
    shown = inspected(tmp_path, capsys)
    assert (
        "[PENSTOCK_CORRUPT_FILE] manifests/0.0: shard 0 of operator 0 and shard 1 of operator 0 share bytes of" in shown
    )
    assert "share bytes of changelogs/0-" in inspected(tmp_path, capsys, "--verify")
