"""`penstock demo` on a part of its flights: three applications, one after the other."""

import json
from pathlib import Path

import pyarrow.parquet as pq
from penstock import cli

FLIGHTS = Path(__file__).parents[3] / "data" / "flights.parquet"
ROWS = 20_000


def test_answers_are_equal_and_everything_is_written(tmp_path, capsys):
    data, result, page = (tmp_path / name for name in ("flights.parquet", "result.json", "page.html"))
    pq.write_table(pq.read_table(FLIGHTS).slice(0, ROWS), data)
    options = ["--data", str(data), "--batches", "2", "--cores", "2", "--json", str(result), "--html", str(page)]
    assert cli.main(["demo", *options]) == 0
    assert "answers are equal" in capsys.readouterr().out
    written = json.loads(result.read_text())
    assert written["equal"] is True
    assert len(written["runs"]) == 3
    for batches in written["runs"].values():
        assert [batch["batch"] for batch in batches] == [0, 1]
        assert sum(batch["rows"] for batch in batches) == ROWS
    tasks = [batches[1]["tasks"] for batches in written["runs"].values()]
    assert tasks == [2, 200, 2]
    assert written["verdict"] in page.read_text()
