"""`penstock demo` on real data, played fast: three applications, one after the other, by files or Kafka."""

import json
from dataclasses import replace
from pathlib import Path

import pyspark
import pytest
from penstock import cli
from penstock.demo.variant import variants

ROOT = Path(__file__).parents[3]
DATA = ROOT / "data"
KAFKA_JARS = ROOT / ".work" / "kafka"


# Spark's connector is published for 4.2 only.
THROUGH_KAFKA = pytest.mark.skipif(not pyspark.__version__.startswith("4.2."), reason="no connector for this Spark")


def with_partitions(number):
    """Give the variants, with fewer partitions for plain Spark as it comes: 200 of a join take minutes here."""

    def made(cores):
        default, *others = variants(cores)
        return (replace(default, conf=(("spark.sql.shuffle.partitions", str(number)),)), *others)

    return made


@pytest.mark.parametrize(
    ("question", "partitions", "through"),
    [
        ("flights", 16, []),
        pytest.param("nasa", 200, ["--kafka", "--kafka-jars", str(KAFKA_JARS)], marks=THROUGH_KAFKA),
    ],
)
def test_answers_are_equal_and_everything_is_written(question, partitions, through, tmp_path, capsys):
    result, page, picture = (tmp_path / name for name in ("result.json", "page.html", "picture.png"))
    options = ["--data", question, "--folder", str(DATA), "--seconds", "5", "--cores", "2", *through]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("penstock.cli.demo.variants", with_partitions(partitions))
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
    assert [run["tasks"] for run in written["runs"].values()] == [partitions, 2, 2]
    assert written["verdict"] in page.read_text()
    assert picture.read_bytes().startswith(b"\x89PNG")
