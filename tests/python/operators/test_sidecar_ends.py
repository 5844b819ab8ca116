"""The driver's sidecar ends with the JVM, also where that has no time to say so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

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
    """Command lines of the processes that another has started."""
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


def test_a_sidecar_ends_with_its_driver_that_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", APPLICATION, str(tmp_path / "checkpoint")]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as application:
        try:
            assert application.stdout is not None
            driver = int(application.stdout.readline())
            until = time.monotonic() + PATIENCE_S
            while not (sidecars := sidecars_of(driver)):
                assert time.monotonic() < until, "no sidecar was started"
                time.sleep(0.1)
            ((sidecar, arguments),) = sidecars.items()
            # It may have to load its planners first; its folder tells that it has begun.
            folder = Path(arguments[arguments.index("penstock.sidecars.planner") + 1])
            while not (folder / "driver.sock").exists():
                assert time.monotonic() < until, "the sidecar does not listen"
                time.sleep(0.1)
            os.kill(driver, signal.SIGKILL)
            while Path(f"/proc/{sidecar}").exists():
                assert time.monotonic() < until, "the sidecar outlives its driver"
                time.sleep(0.1)
            assert not folder.exists()
        finally:
            application.kill()
