"""Counts keys on whatever cluster it is submitted to, until shards have travelled if there are two executors.

What it found is in `deployed.json`.
"""

import json
import os
import re
import socket
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

FOLDER, EXECUTORS = sys.argv[1], int(sys.argv[2])
PATIENCE_S = 120
REST_PORT = 6066


def sidecars(_):
    """Processes of the machine that a task runs on."""
    found = 0
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += b"penstock.sidecars.transfer" in line.read_bytes()
        except OSError:
            continue
    return [found]


def private(folder):
    """Modes of a folder and of its files; and whether a secret in them is on a command line, or in an environment."""
    secrets = re.findall(rb"secret (\w+)", (Path(folder) / "cluster.conf").read_bytes())
    shown = 0
    for file in (*Path("/proc").glob("[0-9]*/cmdline"), *Path("/proc").glob("[0-9]*/environ")):
        try:
            said = file.read_bytes()
        except OSError:
            continue
        # Spark gives it to executors in their environment, which is their user's alone.
        shown += any(s in said for s in secrets) and (file.name == "cmdline" or b"penstock.sidecars.transfer" in said)
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in (Path(folder), *Path(folder).glob("*.conf"))}
    return {"modes": modes, "secrets": len(secrets), "shown": shown}


def rest_is_open(master):
    """Whether the master takes applications by REST, which asks for no secret."""
    with socket.socket() as probe:
        probe.settimeout(5)
        return probe.connect_ex((urlsplit(master).hostname, REST_PORT)) == 0


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
    "rest": rest_is_open(context.master),
    "even": len(set(counts)) == 1 and counts[0] % 10 == 0,
}
if "spark-" in (local := os.environ.get("SPARK_LOCAL_DIRS", "")):
    told["private"] = private(local)
# Output is mixed with what others log.
(Path(FOLDER) / "deployed.json").write_text(json.dumps(told))
spark.stop()
