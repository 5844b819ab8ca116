"""Spark Connect, with a real server and a client in its own process, which has no JVM."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest
from eventually import eventually
from penstock.api.jars import jar_for
from penstock.api.queries import PLUGIN

if TYPE_CHECKING:
    from collections.abc import Iterator

CLIENT = Path(__file__).with_name("connect_client.py")
WAITING = Path(__file__).parents[2] / "waiting"
"""Folder of a module that the client imports."""
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
PATIENCE_S = 180
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))},
    "SPARK_LOCAL_IP": "127.0.0.1",
    "PYSPARK_PYTHON": sys.executable,
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """Yield the URL of a Connect server with the plugin."""
    home = Path(pyspark.__file__).parent
    conf = {
        "spark.plugins": PLUGIN,
        "spark.penstock.shards": "16",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    command = [str(home / "bin" / "spark-submit"), "--class", SERVER, "--master", "local[2]"]
    command += ["--jars", str(jar_for(pyspark.__version__))]
    command += [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    log = tmp_path / "server.log"
    with log.open("wb") as output:
        running = subprocess.Popen(
            [*command, "spark-internal"],
            cwd=tmp_path,
            env=ENVIRONMENT | {"SPARK_HOME": str(home)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield f"sc://127.0.0.1:{port(log, running)}"
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def port(log: Path, running: subprocess.Popen[bytes]) -> int:
    def found() -> int | None:
        assert running.poll() is None, f"the server has ended: {end_of(log)}"
        started = re.search(r"Spark Connect server started at: \S*:(\d+)", log.read_text(errors="replace"))
        return int(started[1]) if started else None

    return eventually(found, timeout_s=PATIENCE_S, what=lambda: f"the server starts: {end_of(log)}")


def end_of(log: Path) -> str:
    return log.read_text(errors="replace")[-3000:]


def run_client(*arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, str(CLIENT), *arguments],
        env=ENVIRONMENT | {"PYTHONPATH": str(WAITING)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]


def test_a_connect_client_can_read_and_change_a_query_like_an_application(server: str, tmp_path: Path) -> None:
    run_client(server, str(tmp_path / "checkpoint"))


def test_a_client_of_a_server_without_the_plugin_is_told_to_enable_it() -> None:
    run_client("local[2]", "without")
