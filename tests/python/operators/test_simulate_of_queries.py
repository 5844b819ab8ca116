"""`penstock simulate` on an event log that Spark wrote."""

import json
import subprocess
import sys
from pathlib import Path

from penstock import cli

QUERY = """
import sys
import penstock
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
for setting in sys.argv[2:]:
    builder = builder.config(*setting.split("="))
spark = penstock.configure(builder).config("spark.eventLog.enabled", "true").getOrCreate()

def run(name, **conf):
    session = spark.newSession()
    for key, value in conf.items():
        session.conf.set("spark.sql.streaming." + key.replace("_", "."), value)
    source = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 600).option("numPartitions", 2).load()
    counts = source.selectExpr("value % 50 AS key").groupBy("key").count()
    writer = counts.writeStream.outputMode("update").format("noop").option("checkpointLocation", sys.argv[1] + name)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    print(name, query.id)

run("bound")
stock = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
run("stock", stateStore_providerClass=stock, internal_stateStore_partitions="3")
spark.stop()
"""


def test_state_partitions_are_placed_unless_tasks_ran_several_of_them(tmp_path, capsys):
    logs = tmp_path / "logs"
    logs.mkdir()
    conf = {
        "spark.driver.host": "127.0.0.1",
        "spark.eventLog.dir": logs.as_uri(),
        "spark.penstock.shards": "16",
    }
    command = [sys.executable, "-c", QUERY, str(tmp_path / "checkpoint"), *(f"{k}={v}" for k, v in conf.items())]
    done = subprocess.run(command, check=True, timeout=300, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    queries = dict(line.split() for line in done.stdout.splitlines() if line.startswith(("bound ", "stock ")))
    (log,) = (path for path in logs.iterdir() if not path.name.startswith("."))
    result = tmp_path / "result.json"
    options = ["--tasks", "3", "--policy", "static", "--json", str(result)]
    assert cli.main(["simulate", str(log), "--query", queries["stock"], *options]) == 0
    # The source gives one batch.
    assert "3 tasks logged, 3 partitions, 1 batches, 3 tasks" in capsys.readouterr().out
    static = json.loads(Path(result).read_text())["policies"]["static"]
    assert all(longest > 0 for longest in static["longest"])
    assert cli.main(["simulate", str(log), "--query", queries["bound"], *options]) == 2
    assert "the query ran under Penstock" in capsys.readouterr().err
