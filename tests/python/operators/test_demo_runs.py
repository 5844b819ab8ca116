"""`penstock demo` on real data, played fast: three applications, one after the other, by files or Kafka."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest
from penstock import cli

ROOT = Path(__file__).parents[3]
DATA = ROOT / "data"
KAFKA_JARS = ROOT / ".work" / "kafka"


# Spark's connector is published for 4.2 only.
THROUGH_KAFKA = pytest.mark.skipif(not pyspark.__version__.startswith("4.2."), reason="no connector for this Spark")


@pytest.fixture
def data(tmp_path):
    """Real data, of flights every tenth."""
    for path in DATA.glob("*.parquet"):
        table = pq.read_table(path)
        if path.name == "flights.parquet":
            table = table.take(range(0, table.num_rows, 10))
        pq.write_table(table, tmp_path / path.name)
    return tmp_path


@pytest.mark.parametrize(
    ("question", "through"),
    [("flights", []), pytest.param("nasa", ["--kafka", "--kafka-jars", str(KAFKA_JARS)], marks=THROUGH_KAFKA)],
)
def test_answers_are_equal_and_everything_is_written(question, through, data, tmp_path, capsys):
    result, page, picture = (tmp_path / name for name in ("result.json", "page.html", "picture.png"))
    options = ["--data", question, "--folder", str(data), "--seconds", "5", "--cores", "2", *through]
    assert cli.main(["demo", *options, "--json", str(result), "--html", str(page), "--png", str(picture)]) == 0
    assert "answers are equal" in capsys.readouterr().out
    written = json.loads(result.read_text())
    assert written["equal"] is True
    assert list(written["runs"]) == ["default", "tuned", "penstock"]
    for run in written["runs"].values():
        came = sum(sum(piece["rows"].values()) for piece in run["delivered"])
        assert came > 10_000
        assert sum(sum(batch["rows"].values()) for batch in run["batches"]) == came
        assert 0 < run["latencyMedianS"] <= run["latencyP99S"]
    assert [run["tasks"] for run in written["runs"].values()] == [200, 2, 2]
    assert written["verdict"] in page.read_text()
    assert picture.read_bytes().startswith(b"\x89PNG")
