"""A fresh virtual environment with PySpark and the built wheel, as a user would make it.

``make test-packaging`` sets the path of the wheel in ``PENSTOCK_WHEEL`` and the version of Spark in ``PENSTOCK_SPARK``.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from slurm import Slurm, fetched


@dataclass(frozen=True)
class Installation:
    """A virtual environment."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def site(self) -> Path:
        return next(self.folder.glob("lib/python3*/site-packages"))

    def run(self, *command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, activated, without variables of Spark, Python or Penstock."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_", "PYTHON", "PENSTOCK_"))}
        path = os.pathsep.join([str(self.folder / "bin"), os.environ["PATH"]])
        return subprocess.run(
            [self.folder / "bin" / command[0], *command[1:]],
            cwd=cwd,
            env=kept | {"SPARK_LOCAL_IP": "127.0.0.1", "PATH": path} | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )


def make(folder: Path, *packages: str) -> Installation:
    subprocess.run([sys.executable, "-m", "venv", folder], check=True, stdin=subprocess.DEVNULL)
    installed = Installation(folder)
    # PySpark is source only: its build needs setuptools, which the development environment has pinned.
    pip = [installed.python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    subprocess.run([*pip, *packages], check=True, stdin=subprocess.DEVNULL)
    return installed


@pytest.fixture
def slurm(tmp_path_factory) -> Iterator[Slurm]:
    root, why_not = fetched()
    if root is None:
        pytest.skip(f"no SLURM: {why_not}")
    cluster = Slurm(root, tmp_path_factory.mktemp("slurm"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()


@pytest.fixture(scope="session")
def wheel() -> Path:
    return Path(os.environ["PENSTOCK_WHEEL"])


@pytest.fixture(scope="session")
def spark_version() -> str:
    return os.environ["PENSTOCK_SPARK"]


@pytest.fixture(scope="session")
def installation(tmp_path_factory, wheel, spark_version) -> Installation:
    return make(tmp_path_factory.mktemp("fresh") / "venv", f"pyspark=={spark_version}", str(wheel))
