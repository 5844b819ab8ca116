"""Submits itself to the cluster that it runs on, in the way of strangers that may not use the cluster.

Each stranger writes `NAME.json` into the folder if it gets a result. `uninvited.json` has the exit code and the output
of each stranger. The exit code is null if the stranger did not end within `PATIENCE_S` seconds.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession

FOLDER, NAME = Path(sys.argv[1]), sys.argv[2]
# A driver tries to reach a master three times, for 20 s each.
PATIENCE_S = 180
STRANGERS = {
    "without": {},
    "wrong": {"spark.authenticate": "true", "spark.authenticate.secret": "0" * 64},
}


def submit(name: str, master: str, conf: dict[str, str]) -> subprocess.Popen[str]:
    """Start the application of a stranger, without the environment variables that could give it access."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK_GATEWAY", "_PYSPARK", "_SPARK"))}
    settings = {"spark.ui.enabled": "false", "spark.cores.max": "1", "spark.executor.memory": "500m", **conf}
    words = [word for setting in settings.items() for word in ("--conf", "=".join(setting))]
    return subprocess.Popen(
        [f"{os.environ['SPARK_HOME']}/bin/spark-submit", "--master", master, *words, __file__, str(FOLDER), name],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def end(process: subprocess.Popen[str]) -> tuple[int | None, str]:
    try:
        output, _ = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
        return None, output
    return process.returncode, output


spark = SparkSession.builder.appName(NAME).getOrCreate()
master = spark.sparkContext.master
(FOLDER / f"{NAME}.json").write_text(json.dumps(spark.range(1000).count()))
# Frees the executors for other applications.
spark.stop()
if NAME == "invited":
    processes = {name: submit(name, master, conf) for name, conf in STRANGERS.items()}
    (FOLDER / "uninvited.json").write_text(json.dumps({name: end(process) for name, process in processes.items()}))
