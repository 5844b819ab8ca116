"""Counts keys on whatever cluster it is submitted to, until shards have travelled if there are two executors.

What it found is in `deployed.json`.
"""

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

FOLDER, EXECUTORS = sys.argv[1], int(sys.argv[2])
PATIENCE_S = 120


def sidecars(_):
    """Processes of the machine that a task runs on."""
    found = 0
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += b"penstock.courier" in line.read_bytes()
        except OSError:
            continue
    return [found]


spark = SparkSession.builder.getOrCreate()
context = spark.sparkContext
source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1000).option("numPartitions", 4).load()
query = (
    source.selectExpr("value % 100 AS key")
    .groupBy("key")
    .count()
    .writeStream.outputMode("complete")
    # Other places in every batch.
    .option("penstock.policy", "chaos(7)")
    .option("checkpointLocation", f"{FOLDER}/checkpoint")
    .format("memory")
    .queryName("counts")
    .start()
)


def travelled():
    metrics = [progress["stateOperators"][0]["customMetrics"] for progress in query.recentProgress]
    return sum(metric["penstockShardsTravelled"] for metric in metrics)


until = time.monotonic() + PATIENCE_S
while time.monotonic() < until:
    time.sleep(0.5)
    there = max(context.parallelize(range(8), 8).mapPartitions(sidecars).collect())
    if query.lastProgress and there and (EXECUTORS == 1 or travelled()):
        break
query.stop()
counts = [row["count"] for row in spark.table("counts").collect()]
offsets = json.loads(min(Path(FOLDER).glob("checkpoint/offsets/[0-9]*")).read_text().splitlines()[1])
told = {
    "provider": offsets["conf"]["spark.sql.streaming.stateStore.providerClass"],
    "executors": context._jsc.sc().getExecutorMemoryStatus().size() - 1,
    "sidecars": there,
    "travelled": travelled(),
    "keys": len(counts),
    "even": len(set(counts)) == 1 and counts[0] % 10 == 0,
}
# Output is mixed with what others log.
(Path(FOLDER) / "deployed.json").write_text(json.dumps(told))
spark.stop()
