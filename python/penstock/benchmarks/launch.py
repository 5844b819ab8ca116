"""Start the benchmark programs with spark-submit of the installed PySpark, and with Penstock as a user would add it."""

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
    """Find the checkout of the project that contains this package or ``start``.

    Raises
    ------
    PenstockError
        ``PENSTOCK_NO_CHECKOUT`` if there is none. The benchmark programs are not part of the wheel.
    """
    for folder in (*Path(__file__).resolve().parents, start.resolve(), *start.resolve().parents):
        if (folder / "build.sbt").is_file() and (folder / "benchmarks" / "src").is_dir():
            return folder
    raise PenstockError(
        "PENSTOCK_NO_CHECKOUT",
        f"Neither this package nor {start} is in a checkout of Penstock, which contains the benchmark programs. "
        "Run `make setup` and `penstock bench` in a checkout.",
    )


def spark_home() -> Path:
    """Return the Spark home of the installed PySpark.

    Raises
    ------
    PenstockError
        ``PENSTOCK_NO_PYSPARK`` if PySpark is not installed.
    """
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise PenstockError("PENSTOCK_NO_PYSPARK", "PySpark is not installed here. Run `make setup`.")
    return Path(spec.origin).parent


def program(root: Path, minor: str) -> Path:
    """Return the jar of the benchmark programs. It is built if it is missing or older than its sources.

    Raises
    ------
    PenstockError
        ``PENSTOCK_BUILD_FAILED``, with the output of sbt.
    """
    folder = root / "benchmarks" / "target" / f"spark-{minor}" / "scala-2.13"
    sources = [f for f in (root / "benchmarks" / "src").rglob("*") if f.is_file()]
    built = _newest(folder)
    if built is None or built.stat().st_mtime < max(f.stat().st_mtime for f in sources):
        print("building the benchmark programs", file=sys.stderr, flush=True)
        command = [str(root / "dev" / "sbt"), f"-Dspark={minor}", *_unmanaged(minor), "benchmarks/package"]
        done = subprocess.run(command, cwd=root, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        built = _newest(folder)
        if done.returncode != 0 or built is None:
            raise PenstockError("PENSTOCK_BUILD_FAILED", f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return built


def _newest(folder: Path) -> Path | None:
    return max(folder.glob("penstock-benchmarks-*.jar"), key=lambda f: f.stat().st_mtime, default=None)


def _unmanaged(minor: str) -> list[str]:
    """Return the sbt options that compile against PySpark's jars, if the Spark is not the default one.

    Only the default Spark's jars are published.
    """
    return [] if minor == "4.2" else [f"-Dspark.jars.dir={spark_home() / 'jars'}"]


def submit(
    conf: Mapping[str, str], application: Sequence[str], spark: str, jar: Path, *, master: str, memory: str
) -> list[str]:
    """Return the spark-submit command of a benchmark program.

    Parameters
    ----------
    conf
        Additional settings of Spark.
    application
        Application with its options and arguments, either a Python program or the jar.
    spark
        Full version of Spark.
    jar
        Jar of the benchmark programs.
    master
        URL of the master, or ``local[N]``.
    memory
        Heap size of the driver. On a local master, tasks run in the driver.
    """
    settings = {
        "spark.plugins": "io.penstock.PenstockPlugin",
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        # Sides share Spark's cache of compiled code, whose default size is enough for one or two queries. With more
        # queries in one process, code would be compiled again in every batch, and for some sides more than for others.
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
    """Run a benchmark program to its end. Its output goes to standard error.

    Raises
    ------
    PenstockError
        ``PENSTOCK_BENCH_FAILED`` if the program fails.
    """
    environment = {**os.environ, "SPARK_HOME": str(spark_home()), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=environment, check=False)
    if done.returncode != 0:
        raise PenstockError(
            "PENSTOCK_BENCH_FAILED",
            f"The benchmark program failed with exit status {done.returncode}. Its output above says why.",
        )
