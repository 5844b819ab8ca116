"""An event log that Spark wrote: `penstock simulate`."""

import json
import subprocess
import sys
from pathlib import Path

from penstock import cli

QUERY = """
import sys
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
for setting in sys.argv[2:]:
    builder = builder.config(*setting.split("="))
spark = builder.config("spark.eventLog.enabled", "true").config("spark.sql.shuffle.partitions", "3").getOrCreate()
source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 600).option("numPartitions", 2).load()
counts = source.selectExpr("value % 50 AS key").groupBy("key").count()
writer = counts.writeStream.outputMode("update").format("noop").option("checkpointLocation", sys.argv[1])
for _ in range(2):
    writer.trigger(availableNow=True).start().awaitTermination()
spark.stop()
"""


def test_partitions_of_a_real_query_are_placed(tmp_path, capsys):
    logs = tmp_path / "logs"
    logs.mkdir()
    conf = {
        "spark.driver.host": "127.0.0.1",
        "spark.eventLog.dir": logs.as_uri(),
    }
    command = [sys.executable, "-c", QUERY, str(tmp_path / "checkpoint"), *(f"{k}={v}" for k, v in conf.items())]
    subprocess.run(command, check=True, timeout=300, stdin=subprocess.DEVNULL, capture_output=True)
    (log,) = (path for path in logs.iterdir() if not path.name.startswith("."))
    result = tmp_path / "result.json"
    assert cli.main(["simulate", str(log), "--tasks", "3", "--policy", "static", "--json", str(result)]) == 0
    # The source gives one batch in each run.
    assert "6 tasks logged, 3 partitions, 2 batches, 3 tasks" in capsys.readouterr().out
    static = json.loads(Path(result).read_text())["policies"]["static"]
    assert all(longest > 0 for longest in static["longest"])
