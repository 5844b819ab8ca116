"""The demonstration's parts that need no Spark: cutting the data, judging balance, comparing answers."""

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock import PenstockError, cli
from penstock.cli import demo
from penstock.workloads._tasks import StageLoad
from penstock.workloads.flights import split


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


def test_equal_answers_in_any_order_and_any_number_of_files(tmp_path, capsys):
    ours, theirs = demo.variants(2)[:2]
    answer(tmp_path, ours, 0, [("ORD", 1), ("JFK", 2)])
    answer(tmp_path, theirs, 0, [("JFK", 2)], [("ORD", 1)])
    assert demo.report(tmp_path, (ours, theirs)) == 0
    assert "answers are equal: 2 rows in 1 batches" in capsys.readouterr().out


@pytest.mark.parametrize("theirs_has", [[("ORD", 1)], [("ORD", 1), ("JFK", 3)], [("ORD", 1), ("JFK", 2), ("JFK", 2)]])
def test_a_differing_row_is_found(tmp_path, capsys, theirs_has):
    ours, theirs = demo.variants(2)[:2]
    answer(tmp_path, ours, 0, [("ORD", 1), ("JFK", 2)])
    answer(tmp_path, theirs, 0, theirs_has)
    assert demo.report(tmp_path, (ours, theirs)) == 1
    assert "DIFFER" in capsys.readouterr().out


def test_a_missing_batch_is_found(tmp_path):
    ours, theirs = demo.variants(2)[:2]
    answer(tmp_path, ours, 0, [("ORD", 1)])
    answer(tmp_path, ours, 1, [("ORD", 1)])
    answer(tmp_path, theirs, 0, [("ORD", 1)])
    assert demo.report(tmp_path, (ours, theirs)) == 1


def test_missing_data_is_an_error(tmp_path, capsys):
    assert cli.main(["demo", "--data", str(tmp_path / "none")]) == 2
    assert "[PENSTOCK_NO_DATA]" in capsys.readouterr().err
    with pytest.raises(PenstockError):
        demo.run(type("Arguments", (), {"data": tmp_path / "none"})())
