"""A standalone Spark cluster on this machine."""

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
START_TIMEOUT_S = 60.0
POLL_S = 0.05
IDLE_S = 20.0
SETTLE_S = 5.0


class Cluster:
    """A master and its workers, which end when the cluster is closed.

    Parameters
    ----------
    folder
        Folder for logs and files of the workers.
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
        """Start a worker with one executor of one core for each of ``cores``."""
        memory = f"{cores * EXECUTOR_MEMORY_MB}m"
        words = ("--host", HOST, "--cores", str(cores), "--memory", memory, self.url)
        self._start(f"worker-{len(self._processes)}", "Successfully registered with master", "worker.Worker", *words)

    def _start(self, name: str, expected_text: str, program: str, *words: str) -> None:
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
        deadline = time.monotonic() + START_TIMEOUT_S
        while expected_text not in log.read_text(errors="replace"):
            if time.monotonic() > deadline:
                raise PenstockError(
                    "PENSTOCK_BENCH_FAILED",
                    f"The {name} of the cluster did not start within {START_TIMEOUT_S:g} s; its log:\n"
                    f"{log.read_text(errors='replace')}",
                )
            time.sleep(POLL_S)

    def close(self) -> None:
        """End master and workers."""
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait()


class Signals:
    """Files with which a benchmark program requests changes of its cluster.

    Parameters
    ----------
    folder
        Folder in which the program creates the files.
    actions
        Action for each file name. It runs on a thread of its own once the file exists.
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
        """Event that is set when the signals are closed. Actions must end then."""
        return self._over

    def close(self) -> None:
        """Stop watching for files."""
        self._over.set()
        self._thread.join()


def sidecars() -> list[int]:
    """Return the process ids of all transfer sidecars on this machine."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"-m\0{SIDECAR}".encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def kill_sidecars(over: threading.Event, killed: list[int]) -> None:
    """Kill all transfer sidecars every second until ``over`` is set, and add their process ids to ``killed``."""
    while not over.wait(1.0):
        for pid in sidecars():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            killed.append(pid)


def idle_share(expected: int, seconds: float = IDLE_S) -> list[float]:
    """Measure the share of a core that each idle transfer sidecar uses.

    Parameters
    ----------
    expected
        Number of sidecars to wait for. They take longer to start than their executors.
    seconds
        Duration of the measurement in seconds.

    Raises
    ------
    PenstockError
        ``PENSTOCK_BENCH_FAILED`` if fewer sidecars have started after a minute.
    """
    deadline = time.monotonic() + START_TIMEOUT_S
    while len(sidecars()) < expected:
        if time.monotonic() > deadline:
            raise PenstockError(
                "PENSTOCK_BENCH_FAILED",
                f"Only {len(sidecars())} of {expected} sidecars have started. Executors log why a sidecar did not.",
            )
        time.sleep(POLL_S)
    time.sleep(SETTLE_S)
    before = {pid: _processor_s(pid) for pid in sidecars()}
    time.sleep(seconds)
    return [(_processor_s(pid) - used) / seconds for pid, used in before.items()]


def _processor_s(pid: int) -> float:
    # The second field is the program's name in brackets, which may contain blanks.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
