"""A Kafka broker of the demonstration's own."""

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
TOLD_OF_A_FAILURE = 4000
"""Characters, the last that it wrote."""
CLUSTER_ID = "cGVuc3RvY2stZGVtb3MhIQ"
"""16 bytes in URL-safe Base64."""


@contextmanager
def broker(class_path: list[Path], folder: Path) -> Iterator[str]:
    """Run a cluster of one broker, which is its own controller, on the loopback interface.

    Parameters
    ----------
    class_path
        Kafka's jars.
    folder
        Of its data and its log.

    Yields
    ------
    str
        Its address, ``HOST:PORT``.

    Raises
    ------
    PenstockError
        ``PENSTOCK_KAFKA`` where it does not start.
    """
    folder.mkdir()
    for_clients, for_controllers = _free_ports(2)
    properties = folder / "server.properties"
    properties.write_text(_properties(folder / "data", for_clients, for_controllers))
    program = java_program()
    if program is None:
        raise PenstockError("PENSTOCK_KAFKA", "There is no Java for the broker. Install Java 17, or set JAVA_HOME.")
    java = [program, "-Xmx512m", "-XX:+UseSerialGC", "-cp", os.pathsep.join(str(jar) for jar in class_path)]
    log = folder / "log"
    with log.open("wb") as output:

        def launch(*arguments: str) -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                [*java, *arguments], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )

        format_it = ("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties))
        if launch(*format_it).wait() != 0:
            raise _failed("could not format its folder", log)
        process = launch("kafka.Kafka", str(properties))
        try:
            _wait_until_ready(process, log)
            yield f"127.0.0.1:{for_clients}"
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
            raise _failed("ended at once", log)
        if time.monotonic() > deadline:
            raise _failed(f"was not ready within {LIMIT_S:g} s", log)
        time.sleep(LOOK_EVERY_S)


def _failed(what: str, log: Path) -> PenstockError:
    text = log.read_text(errors="replace")[-TOLD_OF_A_FAILURE:]
    return PenstockError("PENSTOCK_KAFKA", f"The Kafka broker {what}; its log:\n{text}")


def _properties(data: Path, for_clients: int, for_controllers: int) -> str:
    return f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{for_controllers}
listeners=PLAINTEXT://127.0.0.1:{for_clients},CONTROLLER://127.0.0.1:{for_controllers}
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
