"""Run the variants of the demonstration, each in a process of its own, and receive their events."""

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from penstock.api.errors import PenstockError
from penstock.demo.events import Event, read
from penstock.demo.kafka import Kafka
from penstock.demo.record import Record
from penstock.demo.variant import Variant

LOOK_EVERY_S = 0.5
MAX_LOG_CHARACTERS = 4000
"""Number of characters from the end of the log that an error message contains."""


def run(
    variant: Variant,
    question: str,
    work: Path,
    look: Callable[[Record], None],
    *,
    seconds: float,
    cores: int,
    kafka: Kafka | None = None,
) -> Record:
    """Run a variant to its end.

    Parameters
    ----------
    variant
        Variant to run.
    question
        Name of the question.
    work
        Folder with the pieces of the streams in ``pieces``. The run creates a folder with the name of the variant.
    look
        Function that is called twice a second with the measurements so far.
    seconds
        Duration of the replay in seconds.
    cores
        Number of cores for Spark.
    kafka
        Broker through which the rows are replayed. None replays them through files.

    Raises
    ------
    PenstockError
        ``PENSTOCK_DEMO_FAILED`` if the process fails.
    """
    folder = work / variant.name
    folder.mkdir()
    command = [sys.executable, "-m", "penstock.demo.play", "--question", question, "--cut-into", str(work / "pieces")]
    command += ["--work", str(folder), "--seconds", str(seconds), "--cores", str(cores)]
    command += [f"--conf={key}={value}" for key, value in variant.conf] + ["--penstock"] * variant.penstock
    if kafka is not None:
        command += ["--kafka", kafka.address, f"--conf=spark.jars={','.join(str(jar) for jar in kafka.connector)}"]
    reads, writes = os.pipe()
    log = folder / "log"
    record = Record()
    with log.open("wb") as output, os.fdopen(reads) as lines:
        try:
            process = subprocess.Popen(
                [*command, "--events", str(writes)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=[writes],
            )
        finally:
            os.close(writes)
        try:
            received: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
            threading.Thread(target=_listen, args=(lines, received), name="events", daemon=True).start()
            _follow(received, record, look)
            status = process.wait()
        except BaseException:
            process.terminate()
            process.wait()
            raise
    if status != 0 or record.loads is None:
        text = log.read_text(errors="replace")[-MAX_LOG_CHARACTERS:]
        raise PenstockError("PENSTOCK_DEMO_FAILED", f"{variant.title} failed (exit status {status}):\n{text}")
    return record


def _listen(lines: Iterable[str], received: "queue.SimpleQueue[Event | None]") -> None:
    for line in lines:
        received.put(read(line))
    received.put(None)


def _follow(received: "queue.SimpleQueue[Event | None]", record: Record, look: Callable[[Record], None]) -> None:
    """Add events to the record until the run has ended."""
    while True:
        try:
            event = received.get(timeout=LOOK_EVERY_S)
            while event is not None:
                record.add(event)
                event = received.get_nowait()
            return
        except queue.Empty:
            look(record)
