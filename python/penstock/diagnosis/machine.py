"""Looks at this machine: versions, files, sockets. It judges nothing."""

import json
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from penstock import __version__
from penstock.api.jars import INSTALLED

_SURVEY_S = 60.0
PYTHON_KEY = "spark.penstock.python"
PACKAGES = ("pyspark", "numpy", "numba", "pyarrow", "google-crc32c")
NEEDS = {
    "Python operators": {
        "pandas": "pyspark.sql.pandas.utils:require_minimum_pandas_version",
        "pyarrow": "pyspark.sql.pandas.utils:require_minimum_pyarrow_version",
        # Generated code, which refuses a runtime that is older than itself.
        "protobuf": "pyspark.sql.streaming.proto.StateMessage_pb2",
    },
    "Spark Connect": {
        "grpcio": "grpc",
        "grpcio-status": "grpc_status",
        "googleapis-common-protos": "google.rpc",
        "zstandard": "zstandard",
        "pandas": "pyspark.sql.pandas.utils:require_minimum_pandas_version",
        "pyarrow": "pyspark.sql.pandas.utils:require_minimum_pyarrow_version",
    },
}
"""Packages that parts of PySpark need, each with a module that can then be imported, and what of it is called."""
_PROBE = """
import json, sys
from importlib import import_module
sys.path += %r
lacking = {}
for part, needs in %r.items():
    lacking[part] = {}
    for package, check in needs.items():
        module, _, function = check.partition(":")
        try:
            imported = import_module(module)
            if function:
                getattr(imported, function)()
        except Exception as error:
            why = str(error).partition("\\n")[0]
            missing = "No module named" in why or "PACKAGE_NOT_INSTALLED" in why
            lacking[part][package] = "" if missing else why
print(json.dumps(lacking))
"""


@dataclass(frozen=True)
class SidecarPython:
    """The Python that a sidecar is started with.

    Parameters
    ----------
    beside
        Whom the sidecar is beside: ``driver`` or ``executors``.
    program
        As settings and environment name it.
    penstock
        Version of the package there; None where it cannot be imported.
    error
        Why it cannot; empty where it can.
    """

    beside: str
    program: str
    penstock: str | None
    error: str = ""


@dataclass(frozen=True)
class Machine:
    """What is there.

    Parameters
    ----------
    python
        Version of this Python, such as ``3.11.7``.
    java
        What ``java -version`` says first; None where there is no Java.
    packages
        Version of each package; None where it is not installed.
    spark_home
        Of the Spark that `spark-submit` would run; None where there is none.
    spark
        Version of that Spark; None where it does not tell.
    jars
        Names of Penstock's jars.
    bridge
        Whether Penstock's bridge is on that Spark's class path.
    defaults
        Settings of ``spark-defaults.conf``.
    defaults_file
        Where they are from; None where there is no such file.
    socket_error
        Why no Unix socket can be made in the temporary folder; None where one can.
    transports
        Between executors' sidecars, and why one cannot be used; empty where it can.
    penstock
        Version of this package.
    sidecars
        What sidecars are started with.
    own_python
        The Python that runs this.
    lacking
        For each part of PySpark in `NEEDS`, the packages that it lacks in the Python of executors, and why one that is
        there does not do; nothing where there is no Spark.
    encryption_error
        Why the Python of executors cannot encrypt; empty where it can.
    """

    python: str
    java: str | None
    packages: dict[str, str | None]
    spark_home: str | None = None
    spark: str | None = None
    jars: tuple[str, ...] = ()
    bridge: bool = False
    defaults: dict[str, str] = field(default_factory=dict)
    defaults_file: str | None = None
    socket_error: str | None = None
    transports: dict[str, str] = field(default_factory=dict)
    penstock: str = __version__
    sidecars: tuple[SidecarPython, ...] = ()
    own_python: str = sys.executable
    lacking: dict[str, dict[str, str]] = field(default_factory=dict)
    encryption_error: str = ""


def look() -> Machine:
    """Look at this machine; starts ``java -version``, and makes and removes a socket."""
    packages = {name: _version(name) for name in PACKAGES}
    home = _spark_home()
    file = _defaults_file(home)
    defaults = {} if file is None else read_defaults(file.read_text(encoding="utf-8", errors="replace"))
    programs = sidecar_programs(defaults, os.environ, sys.executable)
    return Machine(
        platform.python_version(),
        _java(),
        packages,
        None if home is None else str(home),
        None if home is None else _spark_version(home, packages["pyspark"]),
        tuple(sorted(path.name for path in INSTALLED.glob("penstock-*.jar"))),
        home is not None and any((home / "jars").glob("penstock-bridge-*.jar")),
        defaults,
        None if file is None else str(file),
        _socket_error(),
        _transports(),
        sidecars=tuple(_sidecar(beside, program) for beside, program in programs.items()),
        lacking={} if home is None else _lacking(programs["executors"], home),
        encryption_error=_answer(programs["executors"], "import cryptography.hazmat.primitives.ciphers.aead")[1],
    )


def sidecar_programs(defaults: Mapping[str, str], environment: Mapping[str, str], own: str) -> dict[str, str]:
    """Name the Python that the driver's sidecar, and those of executors, are started with, as the JVM finds it.

    Where nobody has named one, the driver's is that of the application: `own`.
    """
    named = [] if defaults.get(PYTHON_KEY, "auto") == "auto" else [defaults[PYTHON_KEY]]
    everywhere = [defaults.get("spark.pyspark.python"), environment.get("PYSPARK_PYTHON")]
    driver = [defaults.get("spark.pyspark.driver.python"), everywhere[0], environment.get("PYSPARK_DRIVER_PYTHON")]
    found = {"driver": [*named, *driver, everywhere[1], own], "executors": [*named, *everywhere]}
    return {beside: next(filter(None, programs), "python3") for beside, programs in found.items()}


def _sidecar(beside: str, program: str) -> SidecarPython:
    version, error = _answer(program, "import penstock; print(penstock.__version__)")
    return SidecarPython(beside, program, version, error)


def read_defaults(text: str) -> dict[str, str]:
    """Read a ``spark-defaults.conf``: a key and a value in each line, with blanks, ``=`` or ``:`` between them."""
    lines = (line.strip() for line in text.splitlines())
    pairs = (re.split(r"\s*[=:\s]\s*", line, maxsplit=1) for line in lines if line and line[0] not in "#!")
    return {pair[0]: pair[1] if len(pair) > 1 else "" for pair in pairs}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def java_program() -> str | None:
    """Find the Java that Spark would start."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(str(Path(home) / "bin" / "java") if home else "java")


def _java() -> str | None:
    java = java_program()
    if java is None:
        return None
    done = subprocess.run([java, "-version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    lines = [line for line in (done.stderr + done.stdout).splitlines() if "version" in line]
    return lines[0] if lines else None


def _spark_home() -> Path | None:
    if home := os.environ.get("SPARK_HOME"):
        return Path(home)
    spec = find_spec("pyspark")
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def _spark_version(home: Path, pyspark: str | None) -> str | None:
    for jar in (home / "jars").glob("spark-core_2.13-*.jar"):
        return jar.name.removeprefix("spark-core_2.13-").removesuffix(".jar")
    return pyspark


def _defaults_file(home: Path | None) -> Path | None:
    folder = os.environ.get("SPARK_CONF_DIR")
    places = [Path(folder)] if folder else [] if home is None else [home / "conf"]
    return next((place / "spark-defaults.conf" for place in places if (place / "spark-defaults.conf").is_file()), None)


def _transports() -> dict[str, str]:
    # In a process of its own: what libraries of transports start is not stopped.
    answer, error = _answer(
        sys.executable, "import json; from penstock.sidecars.transfer.offers import survey; print(json.dumps(survey()))"
    )
    if answer is None:
        return {"tcp": f"they cannot be tried: {error}"}
    found: dict[str, str] = json.loads(answer)
    return found


def _lacking(program: str, home: Path) -> dict[str, dict[str, str]]:
    """Import what parts of PySpark need, as a worker of executors would; a Python that does not run has nothing."""
    # Where PySpark is not installed, workers have it from these.
    zips = sorted(str(path) for path in (home / "python" / "lib").glob("*.zip"))
    answer, error = _answer(program, _PROBE % (zips, NEEDS))
    if answer is None:
        return {part: dict.fromkeys(needs, error) for part, needs in NEEDS.items()}
    found: dict[str, dict[str, str]] = json.loads(answer)
    return found


def _answer(program: str, code: str) -> tuple[str | None, str]:
    """Give what a Python prints that runs the code; where it does not, None and why."""
    try:
        done = subprocess.run([program, "-c", code], capture_output=True, text=True, check=False, timeout=_SURVEY_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, str(error)
    if done.returncode:
        return None, done.stderr.strip().rpartition("\n")[2]
    return done.stdout.strip(), ""


def _socket_error() -> str | None:
    try:
        with tempfile.TemporaryDirectory(prefix="penstock-") as folder, socket.socket(socket.AF_UNIX) as made:
            made.bind(str(Path(folder) / "sidecar.sock"))
    except (OSError, AttributeError) as error:
        return str(error)
    return None
