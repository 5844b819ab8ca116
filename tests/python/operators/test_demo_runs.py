"""`penstock demo` on a part of the real data at high speed: three applications in turn, with files or Kafka."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pyspark
import pytest
from penstock import cli
from penstock.demo.variant import variants
from penstock.workloads.questions import QUESTIONS

ROOT = Path(__file__).parents[3]
DATA = ROOT / "data"
KAFKA_JARS = ROOT / ".work" / "kafka"
PARTITIONS = 16
ROWS = 100_000

# Spark's connector is published for 4.2 only.
THROUGH_KAFKA = pytest.mark.skipif(not pyspark.__version__.startswith("4.2."), reason="no connector for this Spark")


def with_few_partitions(cores):
    """Return the variants, with fewer partitions for default Spark: its 200 take a minute and more here."""
    default, *others = variants(cores)
    return (replace(default, conf=(("spark.sql.shuffle.partitions", str(PARTITIONS)),)), *others)


def thinned(question, folder):
    """Write a question's file with about `ROWS` of its rows, evenly chosen. Return the folder."""
    rows = pq.read_table(DATA / QUESTIONS[question].file)
    every = max(1, rows.num_rows // ROWS)
    pq.write_table(rows.take(np.arange(0, rows.num_rows, every)), folder / QUESTIONS[question].file)
    return folder


@pytest.mark.parametrize(
    ("question", "through"),
    [
        ("flights", []),
        pytest.param("nasa", ["--kafka", "--kafka-jars", str(KAFKA_JARS)], marks=THROUGH_KAFKA),
    ],
)
def test_the_demonstration_gives_equal_answers_and_writes_all_files(question, through, tmp_path, capsys):
    result, page, picture = (tmp_path / name for name in ("result.json", "page.html", "picture.png"))
    folder = thinned(question, tmp_path)
    options = ["--data", question, "--folder", str(folder), "--seconds", "5", "--cores", "2", *through]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("penstock.cli.demo.variants", with_few_partitions)
        assert cli.main(["demo", *options, "--json", str(result), "--html", str(page), "--png", str(picture)]) == 0
    assert "answers are equal" in capsys.readouterr().out
    written = json.loads(result.read_text())
    assert written["equal"] is True
    assert list(written["runs"]) == ["default", "tuned", "penstock"]
    for run in written["runs"].values():
        delivered = sum(sum(piece["rows"].values()) for piece in run["delivered"])
        assert delivered > 10_000
        assert sum(sum(batch["rows"].values()) for batch in run["batches"]) == delivered
        assert 0 < run["latencyMedianS"] <= run["latencyP99S"]
    assert [run["tasks"] for run in written["runs"].values()] == [PARTITIONS, 2, 2]
    assert written["verdict"] in page.read_text()
    assert picture.read_bytes().startswith(b"\x89PNG")
