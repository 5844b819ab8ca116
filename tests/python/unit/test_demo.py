"""The demonstration's parts that need no Spark: cutting the data, judging balance, comparing answers."""

import base64
import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock import PenstockError, cli
from penstock.charts import html
from penstock.cli import demo
from penstock.workloads._tasks import StageLoad
from penstock.workloads.flights import Batch, split


@given(st.lists(st.integers(0, 1000), min_size=1))
def test_balance_is_the_busiest_over_the_mean(rows):
    load = StageLoad(tuple(rows))
    assert load.tasks == len(rows)
    assert 1 <= load.busiest_over_mean <= len(rows)
    if sum(rows):
        assert load.busiest_over_mean == pytest.approx(max(rows) / (sum(rows) / len(rows)))


@pytest.mark.parametrize("batches", [1, 3, 10])
def test_split_keeps_every_row_in_order(tmp_path, batches):
    source = tmp_path / "source.parquet"
    pq.write_table(pa.table({"n": list(range(10))}), source)
    split(source, tmp_path / "parts", batches)
    parts = [pq.read_table(f)["n"].to_pylist() for f in sorted((tmp_path / "parts").iterdir())]
    assert len(parts) == batches
    assert [n for part in parts for n in part] == list(range(10))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def answer(work: Path, variant: demo.Variant, batch: int, *files: list[tuple[str, int]]) -> None:
    folder = work / variant.name / "answers" / f"batch={batch}"
    folder.mkdir(parents=True)
    for i, rows in enumerate(files):
        start = [{"start": dt.datetime(2001, 1, 1, hour)} for _, hour in rows]
        pq.write_table(pa.table({"origin": [o for o, _ in rows], "period": start}), folder / f"part-{i}.parquet")


def test_equal_answers_in_any_order_and_any_number_of_files(tmp_path):
    ours, theirs = demo.variants(2)[:2]
    answer(tmp_path, ours, 0, [("ORD", 1), ("JFK", 2)])
    answer(tmp_path, theirs, 0, [("JFK", 2)], [("ORD", 1)])
    verdict, equal = demo.judge(tmp_path, (ours, theirs))
    assert equal
    assert "answers are equal: 2 rows in 1 batches" in verdict


@pytest.mark.parametrize("theirs_has", [[("ORD", 1)], [("ORD", 1), ("JFK", 3)], [("ORD", 1), ("JFK", 2), ("JFK", 2)]])
def test_a_differing_row_is_found(tmp_path, theirs_has):
    ours, theirs = demo.variants(2)[:2]
    answer(tmp_path, ours, 0, [("ORD", 1), ("JFK", 2)])
    answer(tmp_path, theirs, 0, theirs_has)
    verdict, equal = demo.judge(tmp_path, (ours, theirs))
    assert not equal
    assert "DIFFER" in verdict


def test_a_missing_batch_is_found(tmp_path):
    ours, theirs = demo.variants(2)[:2]
    answer(tmp_path, ours, 0, [("ORD", 1)])
    answer(tmp_path, ours, 1, [("ORD", 1)])
    answer(tmp_path, theirs, 0, [("ORD", 1)])
    assert not demo.judge(tmp_path, (ours, theirs))[1]


def test_missing_data_is_an_error(tmp_path, capsys):
    assert cli.main(["demo", "--data", str(tmp_path / "none")]) == 2
    assert "[PENSTOCK_NO_DATA]" in capsys.readouterr().err
    with pytest.raises(PenstockError):
        demo.run(type("Arguments", (), {"data": tmp_path / "none"})())


def measured():
    ours = [Batch(i, 100, 2, 1.0 + i / 100, ms) for i, ms in enumerate([900, 100, 120, 110])]
    return {"Penstock <256>": ours, "plain": [Batch(0, 100, 2, 2.0, 50)]}


def test_the_first_batch_is_not_counted():
    assert demo.summary(measured()) == [
        ["Penstock <256>", "4", "110", "120", "1.020"],
        ["plain", "1", "50", "50", "2.000"],
    ]


def test_the_page_is_whole_by_itself():
    text = html.page("Runs & more", ["equal <all>"], ["run", "n"], [["a<b", "1"]], demo.charts(measured()))
    assert "<h1>Runs &amp; more</h1>" in text
    assert "<p>equal &lt;all&gt;</p>" in text
    assert "<td>a&lt;b</td><td>1</td>" in text
    picture = base64.b64decode(text.partition("data:image/png;base64,")[2].partition('"')[0])
    assert picture.startswith(b"\x89PNG")
    assert "http" not in text


def test_charts_have_every_batch_of_every_run():
    time, balance = demo.charts(measured())
    assert [(line.name, list(line.y)) for line in time.lines] == [
        ("Penstock <256>", [900, 100, 120, 110]),
        ("plain", [50]),
    ]
    assert list(balance.lines[1].y) == [2.0]
