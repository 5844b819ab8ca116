"""Starts the measuring programs: spark-submit of the installed PySpark, with Penstock as a user would add it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from penstock.api.errors import PenstockError
from penstock.api.jars import jar_for

MAIN_CLASS = "io.penstock.benchmarks.Main"


def checkout(start: Path) -> Path:
    """Find the checkout of the project that holds this package, or else ``start``.

    Raises
    ------
    PenstockError
        ``PENSTOCK_NO_CHECKOUT`` where there is none: the measuring programs are not part of the wheel.
    """
    for folder in (*Path(__file__).resolve().parents, start.resolve(), *start.resolve().parents):
        if (folder / "build.sbt").is_file() and (folder / "benchmarks" / "src").is_dir():
            return folder
    raise PenstockError(
        "PENSTOCK_NO_CHECKOUT",
        f"Neither this package nor {start} is in a checkout of Penstock, which has the measuring programs. "
        "Run `penstock bench` in a checkout, after `make setup`.",
    )


def spark_home() -> Path:
    """Find the Spark of the installed PySpark.

    Raises
    ------
    PenstockError
        ``PENSTOCK_NO_PYSPARK`` where there is none.
    """
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise PenstockError("PENSTOCK_NO_PYSPARK", "PySpark is not installed here. Run `make setup`.")
    return Path(spec.origin).parent


def program(root: Path, minor: str) -> Path:
    """Find the jar of the measuring programs, and build it first where it is missing or older than its sources.

    Raises
    ------
    PenstockError
        ``PENSTOCK_BUILD_FAILED``, with what sbt said.
    """
    folder = root / "benchmarks" / "target" / f"spark-{minor}" / "scala-2.13"
    sources = [f for f in (root / "benchmarks" / "src").rglob("*") if f.is_file()]
    built = _newest(folder)
    if built is None or built.stat().st_mtime < max(f.stat().st_mtime for f in sources):
        print("building the measuring programs", file=sys.stderr, flush=True)
        command = [str(root / "dev" / "sbt"), f"-Dspark={minor}", *_unmanaged(minor), "benchmarks/package"]
        done = subprocess.run(command, cwd=root, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        built = _newest(folder)
        if done.returncode != 0 or built is None:
            raise PenstockError("PENSTOCK_BUILD_FAILED", f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return built


def _newest(folder: Path) -> Path | None:
    return max(folder.glob("penstock-benchmarks-*.jar"), key=lambda f: f.stat().st_mtime, default=None)


def _unmanaged(minor: str) -> list[str]:
    """Only the default Spark's jars are published; others are compiled against PySpark's."""
    return [] if minor == "4.2" else [f"-Dspark.jars.dir={spark_home() / 'jars'}"]


def submit(
    conf: Mapping[str, str], application: Sequence[str], spark: str, jar: Path, *, master: str, memory: str
) -> list[str]:
    """Make the command line of a measuring program.

    Parameters
    ----------
    application
        The application and its arguments: of a Python program, or of the jar.
    spark
        Full version of Spark.
    jar
        Of the measuring programs.
    memory
        Heap of the driver, which runs the tasks.
    """
    settings = {
        "spark.plugins": "io.penstock.PenstockPlugin",
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        # Sides share Spark's cache of compiled code, which holds what one or two queries need: with more of them in one
        # process, each would be compiled anew in every batch, those at the ends of a round most often.
        "spark.sql.codegen.cache.maxEntries": "2000",
        **conf,
    }
    command = [str(spark_home() / "bin" / "spark-submit"), "--master", master, "--driver-memory", memory]
    needed = sorted((jar.parent / "lib").glob("*.jar"))
    command += ["--driver-class-path", os.pathsep.join(map(str, [jar_for(spark), jar, *needed]))]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    return command + list(application)


def run(command: Sequence[str]) -> None:
    """Run a measuring program to its end; what it prints goes to standard error.

    Raises
    ------
    PenstockError
        ``PENSTOCK_BENCH_FAILED`` where it fails.
    """
    environment = {**os.environ, "SPARK_HOME": str(spark_home()), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=environment, check=False)
    if done.returncode != 0:
        raise PenstockError(
            "PENSTOCK_BENCH_FAILED", f"The measuring program ended with status {done.returncode}; it says why above."
        )
