"""Counts keys on the cluster to which it is submitted. With two executors, it waits until shards have travelled.

It writes what it found to `deployed.json`. It imports from `tests/waiting`, which must be in ``PYTHONPATH``.
"""

import json
import os
import re
import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

from eventually import eventually
from pyspark.sql import SparkSession

FOLDER, EXECUTORS = sys.argv[1], int(sys.argv[2])
PATIENCE_S = 120
REST_PORT = 6066


def sidecars(application):
    """Count the transfer sidecars of an application's executors on the machine of a task."""
    found = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if b"penstock.sidecars.transfer" in (process / "cmdline").read_bytes():
                parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
                found += application.encode() in Path(f"/proc/{parent}/cmdline").read_bytes()
        except OSError:
            continue
    return [found]


def private(folder):
    """Return the modes of a folder and its files, the number of secrets in them, and how often processes show one."""
    secrets = re.findall(rb"secret (\w+)", (Path(folder) / "cluster.conf").read_bytes())
    shown = 0
    for file in (*Path("/proc").glob("[0-9]*/cmdline"), *Path("/proc").glob("[0-9]*/environ")):
        try:
            data = file.read_bytes()
        except OSError:
            continue
        # Spark passes the secret to executors in their environment, which only their user can read.
        shown += any(s in data for s in secrets) and (file.name == "cmdline" or b"penstock.sidecars.transfer" in data)
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
    # Places shards anew in every batch.
    .option("penstock.policy", "chaos(7)")
    .option("checkpointLocation", f"{FOLDER}/checkpoint")
    .format("memory")
    .queryName("counts")
    .start()
)


def travelled():
    metrics = [progress["stateOperators"][0]["customMetrics"] for progress in query.recentProgress]
    return sum(metric["penstockShardsTravelled"] for metric in metrics)


def running():
    application = context.applicationId
    return max(context.parallelize(range(8), 8).mapPartitions(lambda _: sidecars(application)).collect())


found = eventually(
    lambda: query.lastProgress and (EXECUTORS == 1 or travelled()) and running(),
    timeout_s=PATIENCE_S,
    what=lambda: f"batches have run, with sidecars and shards that travel: {query.lastProgress}",
)
query.stop()
counts = [row["count"] for row in spark.table("counts").collect()]
offsets = json.loads(min(Path(FOLDER).glob("checkpoint/offsets/[0-9]*")).read_text().splitlines()[1])
result = {
    "provider": offsets["conf"]["spark.sql.streaming.stateStore.providerClass"],
    "executors": context._jsc.sc().getExecutorMemoryStatus().size() - 1,
    "sidecars": found,
    "travelled": travelled(),
    "keys": len(counts),
    "rest": rest_is_open(context.master),
    "even": len(set(counts)) == 1 and counts[0] % 10 == 0,
}
if "spark-" in (local := os.environ.get("SPARK_LOCAL_DIRS", "")):
    result["private"] = private(local)
# Not printed, because standard output also has the logs of other processes.
(Path(FOLDER) / "deployed.json").write_text(json.dumps(result))
spark.stop()
