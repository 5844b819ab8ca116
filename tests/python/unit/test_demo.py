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
def test_balance_is_the_busiest_over_the_mean(rows):
    load = StageLoad(tuple(rows))
    assert load.tasks == len(rows)
    assert 1 <= load.imbalance <= len(rows)
    if sum(rows):
        assert load.imbalance == pytest.approx(max(rows) / (sum(rows) / len(rows)))


def stream(seconds):
    times = pa.array([START + timedelta(seconds=s) for s in sorted(seconds)], pa.timestamp("us", "UTC"))
    return pa.table({TIME: times, "n": list(range(len(seconds)))})


@pytest.mark.parametrize("pieces", [1, 3, 10])
def test_pieces_have_equal_times_and_every_row_of_the_span_once(tmp_path, pieces):
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


def test_a_piece_becomes_visible_whole_and_is_told(tmp_path):
    cut({"a": stream([0, 1, 5]), "b": stream([7])}, timedelta(seconds=10), 2, tmp_path / "pieces")
    told = []
    feed = FileFeed(tmp_path / "source", ["a", "b"])
    replay = Replay(pieces_of(tmp_path / "pieces"), feed, told.append)
    replay.deliver(0)
    assert [f.name for f in (tmp_path / "source" / "a").iterdir()] == ["00000.parquet"]
    replay.start(1, 0.01).result()
    assert [(d.piece, d.rows) for d in told] == [(0, {"a": 2, "b": 0}), (1, {"a": 1, "b": 1})]
    assert pq.read_table(tmp_path / "source" / "b" / "00001.parquet")["n"].to_pylist() == [0]


def test_a_piece_that_cannot_be_delivered_ends_the_replay_with_its_error(tmp_path):
    cut({"a": stream([0, 1, 5])}, timedelta(seconds=10), 5, tmp_path / "pieces")
    told = []
    replay = Replay(pieces_of(tmp_path / "pieces"), FileFeed(tmp_path / "source", ["a"]), told.append)
    (tmp_path / "pieces" / "a" / "00002.parquet").unlink()
    with pytest.raises(FileNotFoundError, match="00002"):
        replay.start(0, 0.01).result()
    assert [d.piece for d in told] == [0, 1]


@pytest.mark.parametrize("stream", ["a", "with.dots and spaces"])
def test_a_feed_knows_its_streams_in_a_querys_progress(stream, tmp_path):
    assert FileFeed(tmp_path, [stream]).stream_of(f"FileStreamSource[file:{tmp_path}/{stream}]") == stream


@pytest.mark.parametrize("name", QUESTIONS)
def test_streams_of_real_data_are_in_the_order_of_their_times(name):
    question = QUESTIONS[name]
    for rows in question.streams(pq.read_table(DATA / question.file).slice(0, 5000)).values():
        assert rows.num_rows == 5000
        assert rows.schema.field(TIME).type == pa.timestamp("us", "UTC")
        times = rows[TIME].cast(pa.int64()).to_numpy()
        assert (times[1:] >= times[:-1]).all()


def test_a_flight_arrives_after_its_way():
    flights = {"dep_utc": [START.replace(tzinfo=None)], "origin": ["ORD"], "destination": ["JFK"]}
    flights |= {"delay_min": [20], "distance_mi": [770]}
    streams = QUESTIONS["flights"].streams(pa.table(flights))
    (departure,), (arrival,) = (streams[name].to_pylist() for name in ("departures", "arrivals"))
    assert (departure["airport"], arrival["airport"]) == ("ORD", "JFK")
    assert arrival[TIME] - departure[TIME] == timedelta(minutes=125)


def happened(shift=0.0):
    """A run: pieces of 10 rows at 100, 101, 102 s; batches that end at 101.5 and 104 s, then one without rows."""
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


def test_rows_wait_for_the_end_of_the_batch_that_took_them():
    noted = record()
    assert list(waited(noted.delivered, noted.batches)) == [
        Waited(100.0, 1.5, 6),
        Waited(100.0, 1.5, 4),
        Waited(101.0, 3.0, 6),
        Waited(101.0, 0.5, 4),
        Waited(102.0, 2.0, 6),
        Waited(102.0, 2.0, 4),
    ]
    # 4 rows waited 0.5 s, 10 1.5 s, 10 2 s, 6 3 s.
    assert [noted.latency_s(q) for q in (0.1, 0.4, 0.5, 0.8, 0.99)] == [0.5, 1.5, 2.0, 2.0, 3.0]


def test_rows_that_no_batch_has_taken_are_not_answered():
    assert list(waited([Delivered(0, 1.0, {"a": 3})], [Batch(0, 2.0, 10, {"a": 2})])) == []
    assert math.isnan(Record().latency_s(0.5))


def test_what_was_before_the_clock_started_is_not_counted():
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


def test_answers_are_equal_wherever_batches_ended(tmp_path):
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


def test_missing_data_and_what_is_out_of_range_are_errors(tmp_path, capsys):
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


def test_the_document_tells_times_from_the_start_of_the_clock():
    told = json.loads(json.dumps(report.document(*measured())))
    assert [batch["end_s"] for batch in told["penstock"]["batches"]] == [1.5, 4.0, 5.0]
    assert [piece["at_s"] for piece in told["penstock"]["delivered"]] == [0.0, 1.0, 2.0]


def test_the_page_is_whole_by_itself():
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


def test_the_screen_shows_who_runs_and_who_waits():
    compared = variants(2)
    noted = Record()
    shown = []
    for event in happened():
        noted.add(event)
        # The status is asked for under Penstock only, where it runs.
        shown.append(drawn(screen("Who?", compared, {"default": noted})))
    assert shown[0].count("waiting") == 2
    assert "warming up: 1 batches" in shown[2]
    assert "3 of 3 pieces delivered, 47% of their rows answered" in shown[7]
    assert "2,500 ms in the last batch" in shown[8]
    assert "half of all rows answered within 2.0 s, 99 % within 3.0 s" in shown[8]


def test_the_table_in_the_terminal():
    text = drawn(table(*measured()))
    assert "tuned Spark" in text
    assert "2,500" in text


def test_work_of_flights_is_what_they_meet():
    def of(airport, *minutes):
        times = pa.array([START + timedelta(minutes=m) for m in minutes], pa.timestamp("us", "UTC"))
        return pa.table({TIME: times, "airport": [airport] * len(minutes)})

    arrivals = pa.concat_tables([of("A", 0, 10, 95), of("B", 20)]).sort_by(TIME)
    departures = pa.concat_tables([of("A", 10, 90, 200), of("B", 15, 20), of("C", 30)]).sort_by(TIME)
    trace = QUESTIONS["flights"].trace({"arrivals": arrivals, "departures": departures})
    cost = {}
    for row in trace.to_pylist():
        cost.setdefault((row["key"], int((row[TIME] - START).total_seconds() // 60)), []).append(row["cost"])
    # A row costs 1, and 1 for each flight that came in the 90 minutes before: at that very minute, but not 90 ago.
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


def test_every_word_of_a_line_is_work():
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
    """Cells of a line of the README's table: static, hindsight, mixed, hybrid."""
    (line,) = (line for line in README.read_text().splitlines() if line.startswith(f"| {IN_README[name]} |"))
    return [cell.strip() for cell in line.strip("|").split("|")[1:]]


@pytest.mark.parametrize("name", QUESTIONS)
def test_what_placing_is_worth_on_the_real_data_is_what_the_readme_prints(name):
    question = QUESTIONS[name]
    found = placements(question, question.streams(pq.read_table(DATA / question.file)))
    assert [of.policy for of in found] == ["static", "hindsight", "mixed", "hybrid"]
    assert [f"{of.of_perfect:.0%}".replace("%", " %") for of in found] == printed_in_readme(name)
    text = sentence(question, found)
    assert all(f"{of.words} {of.of_perfect:.0%}" in text for of in found)


def test_the_trace_that_is_counted_is_written_and_simulated_alike(tmp_path, capsys):
    """As the README says to see its table's numbers."""
    trace, result = tmp_path / "nasa.parquet", tmp_path / "result.json"
    assert cli.main(["demo", "--data", "nasa", "--folder", str(DATA), "--trace", str(trace)]) == 0
    told = capsys.readouterr().out
    command = told[told.index("penstock simulate ") :].split()[1:]
    assert command == ["simulate", str(trace), "--cost", "cost", "--interval", "900"]
    assert cli.main([*command, "--json", str(result)]) == 0
    policies = json.loads(result.read_text())["policies"]
    counted = [policies[name]["of_perfect"] for name in ("static", "hindsight", "mixed", "hybrid")]
    assert [f"{share:.0%}".replace("%", " %") for share in counted] == printed_in_readme("nasa")


@pytest.mark.parametrize("option", ["json", "png", "html", "trace"])
def test_a_file_that_cannot_be_written_is_found_before_the_replay(option, tmp_path, capsys):
    place = tmp_path / "no" / "folder"
    assert cli.main(["demo", "--folder", str(tmp_path), f"--{option}", str(place)]) == 2
    assert f"--{option} is {place}, which cannot be written" in capsys.readouterr().err
