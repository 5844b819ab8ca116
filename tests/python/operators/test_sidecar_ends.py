"""The planner sidecar ends with the driver's JVM, even if the JVM is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from eventually import eventually

PATIENCE_S = 120

APPLICATION = """
import sys
import penstock
from pyspark import SparkContext
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
for name in ("spark.driver.host", "spark.driver.bindAddress"):
    builder = builder.config(name, "127.0.0.1")
spark = penstock.configure(builder).getOrCreate()
query = (
    spark.readStream.format("rate").option("rowsPerSecond", 100).load()
    .groupBy("value").count()
    .writeStream.outputMode("update").format("noop")
    .option("penstock.tasks", "auto").option("checkpointLocation", sys.argv[1]).start()
)
print(SparkContext._jvm.java.lang.ProcessHandle.current().pid(), flush=True)
query.awaitTermination()
"""


def sidecars_of(pid: int) -> dict[int, list[str]]:
    """Return the command lines of the planner sidecars that a process has started, by their process IDs."""
    found = {}
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
                command = (process / "cmdline").read_text().split("\0")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if parent == pid and "penstock.sidecars.planner" in command:
                found[int(process.name)] = command
    return found


def test_the_planner_sidecar_ends_when_its_driver_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", APPLICATION, str(tmp_path / "checkpoint")]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as application:
        try:
            assert application.stdout is not None
            driver = int(application.stdout.readline())
            sidecars = eventually(lambda: sidecars_of(driver), timeout_s=PATIENCE_S, what="a sidecar is started")
            ((sidecar, arguments),) = sidecars.items()
            # The sidecar may have to load its planners first. Its socket shows that it has started.
            folder = Path(arguments[arguments.index("penstock.sidecars.planner") + 1])
            eventually((folder / "driver.sock").exists, timeout_s=PATIENCE_S, what="the sidecar listens")
            os.kill(driver, signal.SIGKILL)
            process = Path(f"/proc/{sidecar}")
            eventually(lambda: not process.exists(), timeout_s=PATIENCE_S, what="the sidecar ends with its driver")
            assert not folder.exists()
        finally:
            application.kill()
