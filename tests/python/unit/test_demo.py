"""The demonstration's parts that need no Spark: cutting the data, measuring runs, comparing answers, the page."""

import base64
import io
import json
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock import cli
from penstock.charts import html
from penstock.demo import answers, events, report
from penstock.demo.events import Batch, Delivered, Session, Started, TaskLoads
from penstock.demo.placement import placements, sentence
from penstock.demo.record import Record, Waited, waited
from penstock.demo.screen import screen, table
from penstock.demo.variant import Variant, variants
from penstock.workloads.feeds import FileFeed
from penstock.workloads.questions import QUESTIONS
from penstock.workloads.questions.question import TIME
from penstock.workloads.replay import Replay, cut, pieces_of
from penstock.workloads.shuffle_loads import StageLoad
from rich.console import Console

DATA = Path(__file__).parents[3] / "data"
README = Path(__file__).parents[3] / "README.md"
START = datetime(2001, 1, 1, tzinfo=UTC)


@given(st.lists(st.integers(0, 1000), min_size=1))
def test_imbalance_is_the_largest_load_over_the_mean(rows):
    load = StageLoad(tuple(rows))
    assert load.tasks == len(rows)
    assert 1 <= load.imbalance <= len(rows)
    if sum(rows):
        assert load.imbalance == pytest.approx(max(rows) / (sum(rows) / len(rows)))


def stream(seconds):
    times = pa.array([START + timedelta(seconds=s) for s in sorted(seconds)], pa.timestamp("us", "UTC"))
    return pa.table({TIME: times, "n": list(range(len(seconds)))})


@pytest.mark.parametrize("pieces", [1, 3, 10])
def test_pieces_span_equal_times_and_have_every_row_once(tmp_path, pieces):
    streams = {"a": stream([0, 1, 1, 5, 9, 9.999, 10, 20]), "b": stream([3, 4])}
    cut(streams, timedelta(seconds=10), pieces, tmp_path)
    for name, rows in (("a", 6), ("b", 2)):
        files = sorted((tmp_path / name).iterdir())
        assert len(files) == pieces
        parts = [pq.read_table(file) for file in files]
        assert [n for part in parts for n in part["n"].to_pylist()] == list(range(rows))
        for piece, part in enumerate(parts):
            offsets = [(t - START).total_seconds() for t in part[TIME].to_pylist()]
            assert all(piece * 10 / pieces <= s < (piece + 1) * 10 / pieces for s in offsets)


def test_a_piece_becomes_visible_at_once_and_is_reported(tmp_path):
    cut({"a": stream([0, 1, 5]), "b": stream([7])}, timedelta(seconds=10), 2, tmp_path / "pieces")
    delivered = []
    feed = FileFeed(tmp_path / "source", ["a", "b"])
    replay = Replay(pieces_of(tmp_path / "pieces"), feed, delivered.append)
    replay.deliver(0)
    assert [f.name for f in (tmp_path / "source" / "a").iterdir()] == ["00000.parquet"]
    replay.start(1, 0.01).result()
    assert [(d.piece, d.rows) for d in delivered] == [(0, {"a": 2, "b": 0}), (1, {"a": 1, "b": 1})]
    assert pq.read_table(tmp_path / "source" / "b" / "00001.parquet")["n"].to_pylist() == [0]


def test_a_piece_that_cannot_be_delivered_ends_the_replay_with_its_error(tmp_path):
    cut({"a": stream([0, 1, 5])}, timedelta(seconds=10), 5, tmp_path / "pieces")
    delivered = []
    replay = Replay(pieces_of(tmp_path / "pieces"), FileFeed(tmp_path / "source", ["a"]), delivered.append)
    (tmp_path / "pieces" / "a" / "00002.parquet").unlink()
    with pytest.raises(FileNotFoundError, match="00002"):
        replay.start(0, 0.01).result()
    assert [d.piece for d in delivered] == [0, 1]


@pytest.mark.parametrize("stream", ["a", "with.dots and spaces"])
def test_a_feed_recognizes_its_streams_in_a_querys_progress(stream, tmp_path):
    assert FileFeed(tmp_path, [stream]).stream_of(f"FileStreamSource[file:{tmp_path}/{stream}]") == stream


@pytest.mark.parametrize("name", QUESTIONS)
def test_streams_of_real_data_are_ordered_by_time(name):
    question = QUESTIONS[name]
    for rows in question.streams(pq.read_table(DATA / question.file).slice(0, 5000)).values():
        assert rows.num_rows == 5000
        assert rows.schema.field(TIME).type == pa.timestamp("us", "UTC")
        times = rows[TIME].cast(pa.int64()).to_numpy()
        assert (times[1:] >= times[:-1]).all()


def test_a_flight_arrives_after_its_flight_time():
    flights = {"dep_utc": [START.replace(tzinfo=None)], "origin": ["ORD"], "destination": ["JFK"]}
    flights |= {"delay_min": [20], "distance_mi": [770]}
    streams = QUESTIONS["flights"].streams(pa.table(flights))
    (departure,), (arrival,) = (streams[name].to_pylist() for name in ("departures", "arrivals"))
    assert (departure["airport"], arrival["airport"]) == ("ORD", "JFK")
    assert arrival[TIME] - departure[TIME] == timedelta(minutes=125)


def happened(shift=0.0):
    """Yield a run: pieces of 10 rows at 100, 101, 102 s; batches that end at 101.5 and 104 s; one without rows."""
    yield Session("http://localhost:1", 4)
    yield Delivered(0, 90.0, {"a": 5})
    yield Batch(0, 95.0, 4000, {"a": 5})
    yield Started(100.0, 1)
    for piece in range(3):
        yield Delivered(piece + 1, 100.0 + piece, {"a": 6, "b": 4})
    yield Batch(1, 101.5 + shift, 1200, {"a": 6, "b": 8})
    yield Batch(2, 104.0 + shift, 2500, {"a": 12, "b": 4})
    yield Batch(3, 105.0 + shift, 300, {"a": 0, "b": 0})
    yield TaskLoads({"0": 2, "1": 2, "2": 2}, {"0": 2.0, "1": 1.5, "2": 1.1})


def record(shift=0.0):
    noted = Record()
    for event in happened(shift):
        noted.add(events.read(events.write(event)))
    return noted


def test_rows_wait_for_the_end_of_the_batch_that_read_them():
    noted = record()
    assert list(waited(noted.delivered, noted.batches)) == [
        Waited(100.0, 1.5, 6),
        Waited(100.0, 1.5, 4),
        Waited(101.0, 3.0, 6),
        Waited(101.0, 0.5, 4),
        Waited(102.0, 2.0, 6),
        Waited(102.0, 2.0, 4),
    ]
    # 4 rows waited 0.5 s, 10 rows 1.5 s, 10 rows 2 s, and 6 rows 3 s.
    assert [noted.latency_s(q) for q in (0.1, 0.4, 0.5, 0.8, 0.99)] == [0.5, 1.5, 2.0, 2.0, 3.0]


def test_rows_that_no_batch_has_read_have_no_latency():
    assert list(waited([Delivered(0, 1.0, {"a": 3})], [Batch(0, 2.0, 10, {"a": 2})])) == []
    assert math.isnan(Record().latency_s(0.5))


def test_batches_before_the_start_of_the_clock_are_not_counted():
    noted = record()
    assert [b.batch for b in noted.warm_up] == [0]
    assert [b.batch for b in noted.working] == [1, 2]
    assert noted.rows_per_second == 30 / 4
    assert noted.batch_ms.tolist() == [1200, 2500]
    assert noted.imbalance == pytest.approx(1.3)
    assert noted.tasks == 2


def answer(work: Path, variant: Variant, batch: int, *files: list[tuple[str, int]]) -> None:
    folder = work / variant.name / "answers" / f"batch={batch}"
    folder.mkdir(parents=True)
    for i, rows in enumerate(files):
        pq.write_table(pa.table({"k": [k for k, _ in rows], "n": [n for _, n in rows]}), folder / f"part-{i}.parquet")


ROWS = [("ORD", 1), ("JFK", 2), ("JFK", 2)]


def test_answers_are_equal_regardless_of_batch_boundaries(tmp_path):
    ours, theirs = variants(2)[:2]
    answer(tmp_path, ours, 0, ROWS)
    answer(tmp_path, theirs, 0, ROWS[2:], ROWS[:1])
    answer(tmp_path, theirs, 1, ROWS[1:2])
    verdict, equal = answers.judge(tmp_path, (ours, theirs))
    assert equal
    assert verdict == "answers are equal: 3 rows, each compared in 2 runs"


@pytest.mark.parametrize("theirs_has", [ROWS[:2], [*ROWS[:2], ("JFK", 3)], [*ROWS, ROWS[0]], [("ORD", 1)] * 3])
def test_a_differing_row_is_found(tmp_path, theirs_has):
    ours, theirs = variants(2)[:2]
    answer(tmp_path, ours, 0, ROWS)
    answer(tmp_path, theirs, 0, theirs_has)
    verdict, equal = answers.judge(tmp_path, (ours, theirs))
    assert not equal
    assert "DIFFER" in verdict
    assert theirs.title in verdict


def test_missing_data_and_options_out_of_range_are_errors(tmp_path, capsys):
    assert cli.main(["demo", "--folder", str(tmp_path)]) == 2
    assert "[PENSTOCK_NO_DATA]" in capsys.readouterr().err
    for option, value in (("--seconds", "0"), ("--seconds", "nan"), ("--cores", "0")):
        assert cli.main(["demo", option, value]) == 2
        assert option in capsys.readouterr().err


def measured():
    compared = variants(2)
    return compared, {variant.name: record(shift) for variant, shift in zip(compared, (3.0, 1.0, 0.0), strict=True)}


def test_the_table_has_a_row_for_each_run():
    assert report.summary(*measured()) == [
        ["plain Spark", "2", "1,850", "2,500", "4", "5.0", "6.0", "2", "1.30"],
        ["tuned Spark", "2", "1,850", "2,500", "6", "3.0", "4.0", "2", "1.30"],
        ["Penstock", "2", "1,850", "2,500", "8", "2.0", "3.0", "2", "1.30"],
    ]


def test_times_in_the_document_are_relative_to_the_start_of_the_clock():
    document = json.loads(json.dumps(report.document(*measured())))
    assert [batch["end_s"] for batch in document["penstock"]["batches"]] == [1.5, 4.0, 5.0]
    assert [piece["at_s"] for piece in document["penstock"]["delivered"]] == [0.0, 1.0, 2.0]


def test_the_page_is_self_contained():
    compared, records = measured()
    text = html.page(
        "Who & why", ["equal <all>"], report.HEADER, report.summary(compared, records), report.charts(compared, records)
    )
    assert "<h1>Who &amp; why</h1>" in text
    assert "<p>equal &lt;all&gt;</p>" in text
    picture = base64.b64decode(text.partition("data:image/png;base64,")[2].partition('"')[0])
    assert picture.startswith(b"\x89PNG")
    assert "http" not in text


def test_charts_have_every_run():
    load, waits, batches = report.charts(*measured())
    assert list(load.lines[0].y) == [10.0, 10.0, 10.0]
    assert [line.name for line in waits.lines] == [v.title for v in variants(2)]
    assert list(batches.lines[2].x) == [1.5, 4.0]


def drawn(renderable):
    console = Console(width=140, record=True, file=io.StringIO())
    console.print(renderable)
    return console.export_text()


def test_the_screen_shows_running_and_waiting_variants():
    compared = variants(2)
    noted = Record()
    shown = []
    for event in happened():
        noted.add(event)
        # Only a running variant with Penstock is asked for its status; this one is plain Spark.
        shown.append(drawn(screen("Who?", compared, {"default": noted})))
    assert shown[0].count("waiting") == 2
    assert "warming up: 1 batches" in shown[2]
    assert "3 of 3 pieces delivered, 47% of their rows answered" in shown[7]
    assert "2,500 ms in the last batch" in shown[8]
    assert "half of all rows answered within 2.0 s, 99 % within 3.0 s" in shown[8]


def test_the_table_is_drawn_in_the_terminal():
    text = drawn(table(*measured()))
    assert "tuned Spark" in text
    assert "2,500" in text


def test_a_departure_costs_more_for_each_recent_arrival():
    def flights(airport, *minutes):
        times = pa.array([START + timedelta(minutes=m) for m in minutes], pa.timestamp("us", "UTC"))
        return pa.table({TIME: times, "airport": [airport] * len(minutes)})

    arrivals = pa.concat_tables([flights("A", 0, 10, 95), flights("B", 20)]).sort_by(TIME)
    departures = pa.concat_tables([flights("A", 10, 90, 200), flights("B", 15, 20), flights("C", 30)]).sort_by(TIME)
    trace = QUESTIONS["flights"].trace({"arrivals": arrivals, "departures": departures})
    cost = {}
    for row in trace.to_pylist():
        cost.setdefault((row["key"], int((row[TIME] - START).total_seconds() // 60)), []).append(row["cost"])
    # A row costs 1. A departure costs 1 more for each arrival flights the last 90 minutes, including the same minute.
    assert cost == {
        ("A", 0): [1],
        ("A", 10): [3, 1],
        ("B", 15): [1],
        ("B", 20): [2, 1],
        ("C", 30): [1],
        ("A", 90): [2],
        ("A", 95): [1],
        ("A", 200): [1],
    }


def test_every_word_of_a_line_is_a_row_of_the_trace():
    lines = pa.table({TIME: pa.array([START], pa.timestamp("us", "UTC")), "text": ["The cat -- the Mat."]})
    trace = QUESTIONS["books"].trace({"lines": lines})
    assert trace["key"].to_pylist() == ["the", "cat", "the", "mat"]
    assert set(trace[TIME].to_pylist()) == {START}


IN_README = {
    "flights": "flights, airport, an hour",
    "taxi": "taxis, zone, an hour",
    "books": "books, word, 1,000 lines",
    "nasa": "web server, visitor, 15 minutes",
}


def printed_in_readme(name):
    """Return the cells of a line of the README's table: static, hindsight, mixed, hybrid."""
    (line,) = (line for line in README.read_text().splitlines() if line.startswith(f"| {IN_README[name]} |"))
    return [cell.strip() for cell in line.strip("|").split("|")[1:]]


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_readme_has_the_gain_from_placing_on_the_real_data(name):
    question = QUESTIONS[name]
    found = placements(question, question.streams(pq.read_table(DATA / question.file)))
    assert [placement.policy for placement in found] == ["static", "hindsight", "mixed", "hybrid"]
    assert [f"{placement.of_perfect:.0%}".replace("%", " %") for placement in found] == printed_in_readme(name)
    text = sentence(question, found)
    assert all(f"{placement.words} {placement.of_perfect:.0%}" in text for placement in found)


def test_the_written_trace_gives_the_same_result_in_simulate(tmp_path, capsys):
    """These are the commands by which the README's table can be reproduced."""
    trace, result = tmp_path / "nasa.parquet", tmp_path / "result.json"
    assert cli.main(["demo", "--data", "nasa", "--folder", str(DATA), "--trace", str(trace)]) == 0
    printed = capsys.readouterr().out
    command = printed[printed.index("penstock simulate ") :].split()[1:]
    assert command == ["simulate", str(trace), "--cost", "cost", "--interval", "900"]
    assert cli.main([*command, "--json", str(result)]) == 0
    policies = json.loads(result.read_text())["policies"]
    counted = [policies[name]["of_perfect"] for name in ("static", "hindsight", "mixed", "hybrid")]
    assert [f"{share:.0%}".replace("%", " %") for share in counted] == printed_in_readme("nasa")


@pytest.mark.parametrize("option", ["json", "png", "html", "trace"])
def test_an_unwritable_file_is_reported_before_the_replay(option, tmp_path, capsys):
    place = tmp_path / "no" / "folder"
    assert cli.main(["demo", "--folder", str(tmp_path), f"--{option}", str(place)]) == 2
    assert f"--{option} is {place}, which cannot be written" in capsys.readouterr().err
