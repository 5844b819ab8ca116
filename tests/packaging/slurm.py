"""SLURM on one node, from Debian's packages, which need not be installed."""

import contextlib
import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

from eventually import eventually

FETCH = Path(__file__).with_name("fetch_slurm.sh")
PATIENCE_S = 60
JOB_S = 300


class Slurm:
    """A controller, one node and the authentication daemon munge, with all files in one folder.

    Parameters
    ----------
    root
        Folder into which the packages are unpacked, or ``/`` if they are installed.
    folder
        Folder for everything that the daemons write.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        self._root = root
        self._folder = folder
        libraries = root / "usr/lib/x86_64-linux-gnu"
        self._environment = {
            **os.environ,
            "PATH": os.pathsep.join([str(root / "usr/bin"), str(root / "usr/sbin"), os.environ["PATH"]]),
            "LD_LIBRARY_PATH": f"{libraries}:{libraries / 'slurm-wlm'}:{root / 'lib/x86_64-linux-gnu'}",
            "SLURM_CONF": str(folder / "slurm.conf"),
        }
        self._processes: list[subprocess.Popen[bytes]] = []
        for name in ("state", "spool"):
            (folder / name).mkdir()
        self._write_configuration(libraries)

    def _write_configuration(self, libraries: Path) -> None:
        host = socket.gethostname().partition(".")[0]
        user = Path("/proc/self").owner()
        key = self._folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        (self._folder / "slurm.conf").write_text(
            f"""ClusterName=penstock
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={_free_port()}
SlurmdPort={_free_port()}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={self._folder}/munge.socket
CredType=cred/munge
PluginDir={libraries}/slurm-wlm
StateSaveLocation={self._folder}/state
SlurmdSpoolDir={self._folder}/spool
SlurmctldPidFile={self._folder}/slurmctld.pid
SlurmdPidFile={self._folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
"""
        )

    def start(self) -> None:
        f = self._folder
        munged = [f"--{name}={f}/munge.{name}" for name in ("socket", "pid-file", "log-file", "seed-file")]
        self._start("munged", "--foreground", "--force", f"--key-file={f}/munge.key", *munged, "--num-threads=2")
        self._await("munge", (f / "munge.socket").exists)
        self._start("slurmctld", "-D")
        self._start("slurmd", "-D", "-d", str(self._root / "usr/sbin/slurmstepd"))
        self._await("the node", lambda: "idle" in self._command("sinfo", "-h", "-o", "%t"))

    def _start(self, program: str, *words: str) -> None:
        path = shutil.which(program, path=self._environment["PATH"])
        with (self._folder / f"{program}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    [path or program, *words],
                    env=self._environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
            )

    def _command(self, *words: str, **environment: str) -> str:
        path = shutil.which(words[0], path=self._environment["PATH"])
        completed = subprocess.run(
            [path or words[0], *words[1:]],
            env=self._environment | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        return completed.stdout + completed.stderr

    def _await(self, name: str, started) -> None:
        def logs() -> str:
            return "".join(log.read_text(errors="replace")[-2000:] for log in self._folder.glob("*.log"))

        eventually(started, timeout_s=PATIENCE_S, what=lambda: f"{name} starts: {logs()}")

    def run(self, script: Path, *arguments: object, options: list[str], **environment: str) -> str:
        """Submit a job, wait for its end, and return its output."""
        output = self._folder / "job.log"
        words = ["sbatch", "--nodes=1", f"--output={output}", "--export=ALL", *options, str(script)]
        output_of_sbatch = self._command(*words, *map(str, arguments), **environment)
        found = re.search(r"Submitted batch job (\d+)", output_of_sbatch)
        assert found, output_of_sbatch

        def has_ended() -> bool:
            state = self._command("squeue", "-h", "-j", found[1], "-o", "%T")
            return not re.search("PENDING|CONFIGURING|RUNNING|COMPLETING", state)

        def printed() -> str:
            return output.read_text() if output.exists() else "it did not start"

        try:
            eventually(has_ended, timeout_s=JOB_S, what=lambda: f"the job ends: {printed()}")
        except AssertionError:
            self._command("scancel", found[1])
            raise
        return output.read_text()

    def close(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE_S)
            process.kill()
            process.wait()


def fetched() -> tuple[Path | None, str]:
    """Provide SLURM. Return its folder, or the reason why it is not available."""
    if all(map(shutil.which, ("slurmctld", "slurmd", "munged"))):
        return Path("/"), ""
    completed = subprocess.run(["bash", FETCH], capture_output=True, text=True, check=False)  # noqa: S607
    if completed.returncode != 0:
        return None, completed.stderr.strip().splitlines()[-1] if completed.stderr.strip() else "it cannot be fetched"
    return Path(completed.stdout.strip()), ""


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
