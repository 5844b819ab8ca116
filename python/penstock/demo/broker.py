"""A Kafka broker that the demonstration starts itself."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from penstock.api.errors import PenstockError
from penstock.diagnosis.machine import java_program

LIMIT_S = 60.0
STOP_S = 10.0
LOOK_EVERY_S = 0.05
MAX_LOG_CHARACTERS = 4000
"""Number of characters from the end of the log that an error message contains."""
CLUSTER_ID = "cGVuc3RvY2stZGVtb3MhIQ"
"""Cluster id: 16 bytes in URL-safe Base64, as Kafka requires."""


@contextmanager
def broker(class_path: list[Path], folder: Path) -> Iterator[str]:
    """Run a cluster with a single broker, which is also the controller, on the loopback interface.

    Parameters
    ----------
    class_path
        Jars of Kafka.
    folder
        Folder to create for the broker's data and log.

    Yields
    ------
    str
        Address of the broker, ``HOST:PORT``.

    Raises
    ------
    PenstockError
        ``PENSTOCK_KAFKA`` if the broker does not start.
    """
    folder.mkdir()
    client_port, controller_port = _free_ports(2)
    properties = folder / "server.properties"
    properties.write_text(_properties(folder / "data", client_port, controller_port))
    program = java_program()
    if program is None:
        raise PenstockError(
            "PENSTOCK_KAFKA", "The Kafka broker needs Java, which was not found. Install Java 17, or set JAVA_HOME."
        )
    java = [program, "-Xmx512m", "-XX:+UseSerialGC", "-cp", os.pathsep.join(str(jar) for jar in class_path)]
    log = folder / "log"
    with log.open("wb") as output:

        def launch(*arguments: str) -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                [*java, *arguments], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )

        format_command = ("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties))
        if launch(*format_command).wait() != 0:
            raise _failed("could not format its folder", log)
        process = launch("kafka.Kafka", str(properties))
        try:
            _wait_until_ready(process, log)
            yield f"127.0.0.1:{client_port}"
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_until_ready(process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + LIMIT_S
    while "Kafka Server started" not in log.read_text(errors="replace"):
        if process.poll() is not None:
            raise _failed("ended before it was ready", log)
        if time.monotonic() > deadline:
            raise _failed(f"was not ready within {LIMIT_S:g} s", log)
        time.sleep(LOOK_EVERY_S)


def _failed(reason: str, log: Path) -> PenstockError:
    text = log.read_text(errors="replace")[-MAX_LOG_CHARACTERS:]
    return PenstockError("PENSTOCK_KAFKA", f"The Kafka broker {reason}; its log:\n{text}")


def _properties(data: Path, client_port: int, controller_port: int) -> str:
    return f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{client_port},CONTROLLER://127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
log.dirs={data}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [s.getsockname()[1] for s in sockets]
