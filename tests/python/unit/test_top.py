"""`penstock top` reads the status of a driver from a real HTTP server and draws it."""

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from eventually import eventually
from hypothesis import given
from hypothesis import strategies as st
from penstock.api.errors import PenstockError
from penstock.cli import main
from penstock.monitor.document import Shards, fetch, read
from penstock.monitor.view import LEVELS, busiest_shards, bytes_in_words, load_of_tasks, shard_map, sparkline, view
from rich.console import Console

STATUS = (Path(__file__).parent / "data" / "status.json").read_text()
"""Status that a driver reported while it ran a query."""


class Driver:
    """Answers as Spark's UI server does."""

    def __init__(self) -> None:
        self.answer = (200, STATUS)
        self.asked: list[str] = []
        driver = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                driver.asked.append(self.path)
                status, body = driver.answer
                self.send_response(status)
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def driver() -> Iterator[Driver]:
    running = Driver()
    thread = threading.Thread(target=running.server.serve_forever)
    thread.start()
    yield running
    running.server.shutdown()
    thread.join()
    running.server.server_close()


def drawn(text: str, width: int = 120) -> str:
    console = Console(width=width, force_terminal=False)
    with console.capture() as capture:
        console.print(view(read(text)))
    return capture.get()


def changed(change: Any) -> str:
    status = json.loads(STATUS)
    change(status)
    return json.dumps(status)


def test_a_running_query_is_drawn(driver: Driver, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", driver.url, "--once", "--batches", "7", "--query", "late flights"]) == 0
    out = capsys.readouterr().out
    assert driver.asked == ["/penstock/json/?batches=7&query=late+flights"]
    (query,) = json.loads(STATUS)["queries"]
    newest = query["batches"][-1]
    region = newest["observedMetrics"]["penstock"]["regions"][0]
    for part in (
        "late flights running",
        f"batch {newest['batchId']}",
        region["operators"],
        f"{region['expectedImbalance']:.2f} expected",
        f"{region['heavyKeys'][0]['key']} {region['heavyKeys'][0]['busyShare']:.1%}",
        "task 0",
        "task 1",
        "busiest shards",
    ):
        assert part in out


def test_keys_without_a_time_are_shown_by_rows_and_short_tasks_as_unmeasured() -> None:
    def short(status: Any) -> None:
        region = status["queries"][0]["batches"][-1]["observedMetrics"]["penstock"]["regions"][0]
        region["heavyKeys"] = [{"key": "ORD", "shard": 3, "rowsShare": 0.25, "rowsShareError": 0.0}]
        del region["achievedImbalance"]

    text = drawn(changed(short))
    assert "heavy keys by rows: ORD 25.0% (shard 3)" in text
    assert "tasks too short to measure" in text


@pytest.mark.parametrize(("pinned", "words"), [(0, None), (1, "1 key pinned"), (2, "2 keys pinned")])
def test_pinned_keys_are_counted(pinned: int, words: str | None) -> None:
    def pins(status: Any) -> None:
        status["queries"][0]["batches"][-1]["observedMetrics"]["penstock"]["regions"][0].update(pinned=pinned)

    text = drawn(changed(pins))
    assert words in text if words else "pinned" not in text


def test_pinned_keys_are_listed_by_name_even_if_never_seen() -> None:
    def pins(status: Any) -> None:
        keys = [
            {"key": "ORD", "shard": 256, "rows": 17, "seen": True},
            {"key": "ORDD", "shard": 257, "rows": 0, "seen": False},
        ]
        status["queries"][0]["batches"][-1]["observedMetrics"]["penstock"]["regions"][0]["pinnedKeys"] = keys

    text = " ".join(drawn(changed(pins)).split())
    assert "pinned keys: ORD (shard 256, 17 rows), ORDD (shard 257, never seen)" in text


def test_the_reason_for_shards_in_turn_is_shown() -> None:
    def in_turn(status: dict[str, Any]) -> None:
        region = status["queries"][0]["batches"][-1]["observedMetrics"]["penstock"]["regions"][0]
        region["inTurn"] = "InMemoryTableScan feeds it without an exchange"

    text = " ".join(drawn(changed(in_turn)).split())
    assert "shards run in turn: InMemoryTableScan feeds it without an exchange" in text


def test_the_report_is_found_beside_a_user_metric_of_the_same_name() -> None:
    def beside(status: Any) -> None:
        metrics = status["queries"][0]["batches"][-1]["observedMetrics"]
        metrics |= {"penstock": {"mine": 5}, "penstock#1": metrics["penstock"], "penstocks": {"mode": 1, "reason": 2}}

    assert drawn(changed(beside)) == drawn(STATUS)


def test_executors_and_homes_are_shown_if_there_are_several_executors() -> None:
    status = json.loads(STATUS)
    report = status["queries"][0]["batches"][-1]["observedMetrics"]["penstock"]
    assert "executors" not in drawn(json.dumps(status))
    report["scaling"] = "6000 ms with 2 executors, 429 ms with 3"
    report["regions"][0] |= {"executors": 2, "homes": "within stabilisation window"}
    text = drawn(json.dumps(status))
    assert "executors: 6000 ms with 2 executors, 429 ms with 3" in text
    assert "on 2 executors: within stabilisation window" in text


def test_operators_of_a_region_are_shown_if_there_are_several() -> None:
    def several(status: Any) -> None:
        status["queries"][0]["regions"][0]["operators"] = [{"operator": 0}, {"operator": 1}]
        status["queries"][0]["batches"][-1]["observedMetrics"]["penstock"]["operators"] = [
            {"operator": 0, "name": "dedupe", "rows": 8000, "rowsMs": 1200},
            {"operator": 1, "name": "stateStoreSave", "rows": 1, "rowsMs": 3},
            {"operator": 2, "name": "of another region", "rows": 1, "rowsMs": 3},
        ]

    assert "time by operator: dedupe 1,200 ms, 8,000 rows; stateStoreSave 3 ms, 1 row\n" in re.sub(
        r" *│\n", "\n", drawn(changed(several))
    )
    assert "time by operator" not in drawn(STATUS)


def test_the_json_output_is_the_status_of_the_driver(driver: Driver, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", driver.url, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(STATUS)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((404, "no"), "runs without Penstock"),
        ((500, "no"), "500"),
        ((200, "<html>"), "not a status of Penstock"),
        ((200, "[]"), "not a status of Penstock"),
        ((200, changed(lambda status: status.update(version=2))), "has version 2, but this command reads version 1"),
        ((200, changed(lambda status: status.pop("queries"))), "not a status of Penstock"),
        ((200, changed(lambda status: status["queries"][0]["regions"][0]["rows"].pop())), "inconsistent"),
        ((200, changed(lambda status: status["queries"][0]["regions"][0].update(tasks=1))), "inconsistent"),
        ((200, changed(lambda status: status["queries"][0]["regions"][0]["tasksWaitNs"].pop())), "inconsistent"),
    ],
)
def test_an_invalid_status_is_refused(
    driver: Driver, capsys: pytest.CaptureFixture[str], answer: tuple[int, str], reason: str
) -> None:
    driver.answer = answer
    assert main(["top", driver.url, "--once"]) == 2
    error = capsys.readouterr().err
    assert "PENSTOCK_NO_STATUS" in error
    assert reason in error


def test_top_polls_until_it_is_interrupted_despite_errors_of_the_driver(driver: Driver) -> None:
    terminal, other_end = pty.openpty()
    seen = bytearray()

    def watch() -> None:
        # Reading fails when the other end is closed.
        with contextlib.suppress(OSError):
            while part := os.read(terminal, 65536):
                seen.extend(part)

    def await_shown(text: bytes) -> None:
        def is_shown() -> bool:
            assert process.poll() is None, f"top has ended: {bytes(seen)!r}"
            return text in seen

        eventually(is_shown, timeout_s=60, what=lambda: f"top shows {text!r}: {bytes(seen)!r}")

    watcher = threading.Thread(target=watch)
    watcher.start()
    # Processes of tests that run in the background ignore Ctrl-C, so the handler of a terminal is restored.
    code = (
        "import signal, sys; from penstock.cli import main; "
        "signal.signal(signal.SIGINT, signal.default_int_handler); sys.exit(main(sys.argv[1:]))"
    )
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200", "LINES": "50"}
    process = subprocess.Popen(
        [sys.executable, "-c", code, "top", driver.url, "--interval", "0.1"],
        stdout=other_end,
        stderr=other_end,
        env=environment,
    )
    try:
        await_shown(b"late flights")
        driver.answer = (500, "no")
        await_shown(b"it answered with HTTP Error 500")
        seen.clear()
        driver.answer = (200, STATUS.replace("late flights", "early flights"))
        await_shown(b"early flights")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.wait()
        os.close(other_end)
        watcher.join()
        os.close(terminal)


def test_an_unreachable_driver_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    stopped = Driver()
    stopped.server.server_close()
    assert main(["top", stopped.url]) == 2
    error = capsys.readouterr().err
    assert "PENSTOCK_NO_STATUS" in error
    assert "spark.plugins=io.penstock.PenstockPlugin" in error


@pytest.mark.parametrize("url", ["file:///etc/passwd", "localhost:4040"])
def test_only_http_urls_are_accepted(url: str) -> None:
    with pytest.raises(PenstockError, match="Allowed: http://HOST:PORT"):
        fetch(url, 1)


@pytest.mark.parametrize("arguments", [["--batches", "0"], ["--batches", "101"], ["--interval", "0"]])
def test_arguments_out_of_range_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", *arguments]) == 2
    error = capsys.readouterr().err
    assert arguments[0] in error
    assert "allowed:" in error


def test_failed_queries_and_queries_left_alone_are_shown_with_the_reason() -> None:
    def change(status: dict[str, Any]) -> None:
        (query,) = status["queries"]
        failed = {**query, "name": None, "ended": True, "exception": "[boom] it broke", "batches": [], "regions": []}
        alone = json.loads(json.dumps(query))
        alone["name"] = "[red]alone"
        alone["batches"][-1]["observedMetrics"]["penstock"] = {"mode": "off", "reason": "its state is another's"}
        status["queries"] = [failed, alone]

    out = drawn(changed(change))
    assert out.index("[red]alone running") < out.index(" failed")
    assert "[boom] it broke" in out
    assert "No batch has run yet." in out
    assert "Penstock leaves the query alone: its state is another's" in out
    assert "No streaming query has been started yet." in drawn(changed(lambda status: status.update(queries=[])))


def test_shards_of_an_older_batch_are_labelled_with_it() -> None:
    out = drawn(changed(lambda status: status["queries"][0]["regions"][0].update(batch=0)))
    assert "shards of batch 0:" in out


def test_loads_of_tasks_and_the_map_of_shards() -> None:
    shards = Shards(0, 1, 2, (0, 1, 1, 0), (1, 1, 1, 1), (8, 1, 0, 4), (1, 1, 0, 1), (3, 1, 0, 2), (13, 1), (0, 2))
    assert load_of_tasks(shards) == [12, 1]
    drawing = shard_map(shards)
    assert drawing.plain == "shards █▂ ▅"
    assert len({span.style for span in drawing.spans}) == 2


def test_a_map_of_many_shards_merges_neighbours() -> None:
    count = 5000
    each = (1,) * count
    shards = Shards(0, 1, 1, (0,) * count, each, each, each, each, (1,), (0,))
    assert len(shard_map(shards).plain) - len("shards ") == 1000


def test_the_busiest_shards_are_shown_with_their_load() -> None:
    busy_ns = (8_000_000, 0, 1_234_000_000, 5_000_000, 9_000_000)
    shards = Shards(0, 1, 1, (0,) * 5, (10, 0, 2000, 7, 8), busy_ns, (1, 0, 1, 3, 4), (10, 0, 4000, 14, 16), (2,), (0,))
    assert busiest_shards(shards).plain == (
        "busiest shards 2: 1,234 ms, 2,000 rows, 1 key, 4,000 state operations; "
        "4: 9 ms, 8 rows, 4 keys, 16 state operations; 0: 8 ms, 10 rows, 1 key, 10 state operations"
    )


@given(st.lists(st.floats(0, 1e18), max_size=50))
def test_a_sparkline_has_a_block_for_each_value_and_the_largest_is_full(values: list[float]) -> None:
    line = sparkline(values)
    assert len(line) == len(values)
    assert all((cell == " ") == (value == 0) for cell, value in zip(line, values, strict=True))
    if any(values):
        assert line[values.index(max(values))] == LEVELS[-1]


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 B"), (1023, "1,023 B"), (1536, "1.5 KiB"), (2**31, "2.0 GiB"), (2**42, "4.0 TiB")]
)
def test_sizes_are_written_in_words(count: int, words: str) -> None:
    assert bytes_in_words(count) == words
