"""Counts keys on a cluster. Runs a batch for each input line `FIRST COUNT`, and prints its metrics as JSON."""

import json
import sys
from pathlib import Path

import penstock
from pyspark.sql import SparkSession

MASTER, HOST, FOLDER, *CONF = sys.argv[1:]
METRICS = ("penstockShardsTravelled", "penstockShardsLoaded", "penstockShardsInMemory", "penstockShardsFolded")


def session():
    builder = (
        SparkSession.builder.master(MASTER)
        .config("spark.driver.host", HOST)
        .config("spark.driver.bindAddress", HOST)
        .config("spark.executor.memory", "700m")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "WARN")
        .config("spark.network.timeout", "30s")
        .config("spark.network.timeoutInterval", "10s")
        .config("spark.executor.heartbeatInterval", "5s")
        .config("spark.penstock.python", sys.executable)
        .config("spark.penstock.shards", "64")
        .config("spark.decommission.enabled", "true")
    )
    for setting in CONF:
        builder = builder.config(*setting.split("=", 1))
    return penstock.configure(builder).getOrCreate()


def main():
    folder = Path(FOLDER)
    source = folder / "source"
    source.mkdir()
    spark = session()
    counts = {}

    def keep(rows, _):
        counts.update({row["key"]: row["count"] for row in rows.collect()})

    query = (
        spark.readStream.schema("value long")
        .option("maxFilesPerTrigger", 1)
        .json(str(source))
        .selectExpr("value % 1000 AS key")
        .groupBy("key")
        .count()
        .writeStream.outputMode("update")
        # Places shards anew in every batch.
        .option("penstock.policy", "chaos(7)")
        .option("penstock.tasks", "4")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .foreachBatch(keep)
        .start()
    )
    print(json.dumps({"ready": True}), flush=True)
    for number, line in enumerate(sys.stdin):
        first, rows = map(int, line.split())
        written = folder / f"{number}.json"
        written.write_text("".join(f'{{"value": {value}}}\n' for value in range(first, first + rows)))
        written.rename(source / f"{number}.json")
        query.processAllAvailable()
        metrics = query.lastProgress["stateOperators"][0]["customMetrics"]
        result = {name: metrics[name] for name in METRICS}
        result["ahead"] = penstock.status(query)["regions"][0].get("shardsAhead") or 0
        print(json.dumps(result | {"counts": counts}), flush=True)
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main()
