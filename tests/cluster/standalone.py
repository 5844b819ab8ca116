"""A standalone master, workers in namespaces, and an application that runs batches on request."""

import json
import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from eventually import eventually
from namespaces import HOST, Namespace

PYSPARK = Path(find_spec("pyspark").origin).parent
PORT = 7177
PATIENCE_S = 120
CORES, MEMORY = "2", "1g"


class Standalone:
    """Master and workers. Each worker has one executor at a time."""

    def __init__(self, places: list[Namespace], folder: Path) -> None:
        self._folder = folder
        self._environment = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))} | {
            "SPARK_HOME": str(PYSPARK),
            "SPARK_LOCAL_DIRS": str(folder / "local"),
            "SPARK_WORKER_DIR": str(folder / "work"),
        }
        self.url = f"spark://{HOST}:{PORT}"
        self._processes = [self._start([], "master", "master.Master", "--host", HOST, "--port", str(PORT))]
        self._wait("master", "I have been elected leader")
        self.places = places
        for number in range(len(places)):
            self.start_worker(number)

    def start_worker(self, number: int) -> None:
        place = self.places[number]
        name = f"worker-{number}-{len(self._processes)}"
        words = ("--host", place.address, "--cores", CORES, "--memory", MEMORY, self.url)
        self._processes.append(self._start(place.command(), name, "worker.Worker", *words))
        self._wait(name, "Successfully registered with master")

    def _start(self, before: list[str], name: str, program: str, *words: str) -> subprocess.Popen[bytes]:
        log = (self._folder / f"{name}.log").open("wb")
        command = [*before, str(PYSPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{program}", *words]
        ui = ("--webui-port", "0")
        with log:
            return subprocess.Popen(
                [*command, *ui] if not before else [*command[:-1], *ui, command[-1]],
                stdout=log,
                stderr=log,
                env=self._environment,
            )

    def _wait(self, name: str, words: str) -> None:
        log = self._folder / f"{name}.log"
        eventually(
            lambda: words in log.read_text(errors="replace"),
            timeout_s=PATIENCE_S,
            what=lambda: f"{name} starts: {log.read_text(errors='replace')[-3000:]}",
        )

    def log_lines(self, word: str) -> list[str]:
        """Return the lines with a word from the logs of all executors, those of one executor after the other."""
        logs = sorted(self._folder.glob("work/*/*/stderr"))
        return [line for log in logs for line in log.read_text(errors="replace").splitlines() if word in line]

    def processes(self, word: str) -> list[int]:
        """Return the IDs of the processes in the namespaces whose command line contains a word."""
        inside = [place.file.stat() for place in self.places]
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    network = (entry / "ns/net").stat()
                    line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                except OSError:
                    continue
                if word in line and any(os.path.samestat(network, place) for place in inside):
                    found.append(int(entry.name))
        return found

    def close(self) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait(PATIENCE_S)


class Application:
    """The driver of the application, which runs outside the namespaces."""

    def __init__(self, cluster: Standalone, folder: Path, **conf: str) -> None:
        words = [f"{key}={value}" for key, value in conf.items()]
        self._log = (folder / "driver.log").open("wb")
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).parent / "application.py"), cluster.url, HOST, str(folder), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self.rows = 0
        assert self._read_answer() == {"ready": True}

    def _read_answer(self) -> dict:
        line = self._process.stdout.readline()
        assert line, "the application has ended: see driver.log"
        return json.loads(line)

    def batch(self, rows: int = 4000) -> dict:
        """Run a batch, check that every row so far was counted once, and return the metrics of the batch."""
        print(self.rows, rows, file=self._process.stdin, flush=True)
        self.rows += rows
        metrics = self._read_answer()
        keys = metrics.pop("counts")
        assert sum(keys.values()) == self.rows
        assert all(count in (self.rows // 1000, self.rows // 1000 + 1) for count in keys.values())
        return metrics

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(PATIENCE_S)
        self._process.stdout.close()
        self._log.close()


def kill(pids: list[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
