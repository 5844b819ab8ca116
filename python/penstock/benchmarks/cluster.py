"""A standalone cluster on this machine: a master, and workers as they are asked for."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

from penstock.api.errors import PenstockError
from penstock.benchmarks import launch

SIDECAR = "penstock.sidecars.transfer"
HOST = "127.0.0.1"
EXECUTOR_MEMORY_MB = 700
PATIENCE_S = 60.0
POLL_S = 0.05
IDLE_S = 20.0
SETTLE_S = 5.0


class Cluster:
    """Master and workers, which end with it.

    Parameters
    ----------
    folder
        For logs and what workers write.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        with socket.socket() as free:
            free.bind((HOST, 0))
            port = free.getsockname()[1]
        self.url = f"spark://{HOST}:{port}"
        self._start("master", "I have been elected leader", "master.Master", "--host", HOST, "--port", str(port))

    def add_worker(self, cores: int) -> None:
        """Start a worker with so many executors of a core each."""
        memory = f"{cores * EXECUTOR_MEMORY_MB}m"
        words = ("--host", HOST, "--cores", str(cores), "--memory", memory, self.url)
        self._start(f"worker-{len(self._processes)}", "Successfully registered with master", "worker.Worker", *words)

    def _start(self, name: str, awaited: str, program: str, *words: str) -> None:
        log = self._folder / f"{name}.log"
        command = [str(launch.spark_home() / "bin" / "spark-class"), f"org.apache.spark.deploy.{program}"]
        with log.open("wb") as output:
            self._processes.append(
                subprocess.Popen(
                    [*command, "--webui-port", "0", *words],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env={
                        **os.environ,
                        "SPARK_HOME": str(launch.spark_home()),
                        "SPARK_LOCAL_IP": HOST,
                        "SPARK_LOCAL_DIRS": str(self._folder),
                        "SPARK_WORKER_DIR": str(self._folder / "work"),
                    },
                )
            )
        until = time.monotonic() + PATIENCE_S
        while awaited not in log.read_text(errors="replace"):
            if time.monotonic() > until:
                raise PenstockError("PENSTOCK_BENCH_FAILED", f"{name} did not start: {log.read_text(errors='replace')}")
            time.sleep(POLL_S)

    def close(self) -> None:
        """End them."""
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait()


class Signals:
    """Files by which a measuring program says what is to happen to the cluster that it runs on.

    Parameters
    ----------
    folder
        Of the files.
    actions
        What to do when a file of that name comes, each on a thread of its own.
    """

    def __init__(self, folder: Path, actions: dict[str, Callable[[], None]]) -> None:
        self._folder = folder
        self._actions = actions
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        waiting = dict(self._actions)
        while not self._over.wait(POLL_S):
            for name in [name for name in waiting if (self._folder / name).exists()]:
                threading.Thread(target=waiting.pop(name), daemon=True).start()

    @property
    def over(self) -> threading.Event:
        """Set when nothing more is to happen."""
        return self._over

    def close(self) -> None:
        """Do nothing any more."""
        self._over.set()
        self._thread.join()


def sidecars() -> list[int]:
    """Find the sidecars of this machine's executors."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"-m\0{SIDECAR}".encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def kill_sidecars(over: threading.Event, killed: list[int]) -> None:
    """Kill all of them every second; adds their process ids to ``killed``."""
    while not over.wait(1.0):
        for pid in sidecars():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            killed.append(pid)


def idle_share(expected: int, seconds: float = IDLE_S) -> list[float]:
    """Measure what share of a core each sidecar uses while nothing is asked of it.

    Parameters
    ----------
    expected
        How many there are to be: they start with their executors, and take longer.
    seconds
        For which they are watched, once they have started.

    Raises
    ------
    PenstockError
        They do not come.
    """
    until = time.monotonic() + PATIENCE_S
    while len(sidecars()) < expected:
        if time.monotonic() > until:
            raise PenstockError("PENSTOCK_BENCH_FAILED", f"{len(sidecars())} sidecars started, of {expected}")
        time.sleep(POLL_S)
    time.sleep(SETTLE_S)
    before = {pid: _processor_s(pid) for pid in sidecars()}
    time.sleep(seconds)
    return [(_processor_s(pid) - used) / seconds for pid, used in before.items()]


def _processor_s(pid: int) -> float:
    # The second field is the program's name, in brackets.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
