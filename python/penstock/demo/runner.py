"""Runs variants, each in a process of its own, and listens to them."""

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
TOLD_OF_A_FAILURE = 4000
"""Characters, the last that it wrote."""


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
        What to run.
    question
        Its question's name.
    work
        Has the streams' pieces in ``pieces``; receives a folder of the variant's name.
    look
        Is called twice a second.
    seconds
        How long the replay takes.
    cores
        For Spark.
    kafka
        What carries the rows; otherwise files do.

    Raises
    ------
    PenstockError
        ``PENSTOCK_DEMO_FAILED`` where the process fails.
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
            told: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
            threading.Thread(target=_listen, args=(lines, told), name="events", daemon=True).start()
            _follow(told, record, look)
            status = process.wait()
        except BaseException:
            process.terminate()
            process.wait()
            raise
    if status != 0 or record.loads is None:
        text = log.read_text(errors="replace")[-TOLD_OF_A_FAILURE:]
        raise PenstockError("PENSTOCK_DEMO_FAILED", f"{variant.title} failed (exit status {status}):\n{text}")
    return record


def _listen(lines: Iterable[str], told: "queue.SimpleQueue[Event | None]") -> None:
    for line in lines:
        told.put(read(line))
    told.put(None)


def _follow(told: "queue.SimpleQueue[Event | None]", record: Record, look: Callable[[Record], None]) -> None:
    """Note events until there are no more."""
    while True:
        try:
            event = told.get(timeout=LOOK_EVERY_S)
            while event is not None:
                record.add(event)
                event = told.get_nowait()
            return
        except queue.Empty:
            look(record)
