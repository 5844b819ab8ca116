"""Collect facts about this machine: versions, files, sockets. They are judged elsewhere."""

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
        # Generated code, which raises an error if the installed runtime is older than itself.
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
"""Packages that parts of PySpark need. A package is installed if its module can be imported and the function after the
colon, if there is one, can be called."""
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
            reason = str(error).partition("\\n")[0]
            missing = "No module named" in reason or "PACKAGE_NOT_INSTALLED" in reason
            lacking[part][package] = "" if missing else reason
print(json.dumps(lacking))
"""


@dataclass(frozen=True)
class SidecarPython:
    """The Python that a sidecar is started with.

    Parameters
    ----------
    beside
        Where the sidecar runs: beside the ``driver`` or the ``executors``.
    program
        Program of this Python, as settings or environment name it.
    penstock
        Version of the package penstock in this Python. None if it cannot be imported.
    error
        Why the package cannot be imported. Empty if it can.
    """

    beside: str
    program: str
    penstock: str | None
    error: str = ""


@dataclass(frozen=True)
class Machine:
    """Facts about a machine.

    Parameters
    ----------
    python
        Version of this Python, such as ``3.11.7``.
    java
        Line of ``java -version`` that names the version. None if there is no Java.
    packages
        Version of each package. None if it is not installed.
    spark_home
        Folder of the Spark that `spark-submit` would run. None if there is none.
    spark
        Version of that Spark. None if it is unknown.
    jars
        Names of the installed jars of Penstock.
    bridge
        Whether Penstock's bridge jar is on that Spark's class path.
    defaults
        Settings of ``spark-defaults.conf``.
    defaults_file
        Path of ``spark-defaults.conf``. None if there is no such file.
    socket_error
        Why no Unix socket can be created in the temporary folder. None if one can.
    transports
        For each transport between transfer sidecars, why it cannot be used. Empty if it can.
    penstock
        Version of this package.
    sidecars
        Pythons that sidecars are started with.
    own_python
        Program of the Python that runs this code.
    lacking
        For each part of PySpark in `NEEDS`, the packages that it needs and the executors' Python does not have. The
        value of a package says why an installed one cannot be used. Empty if there is no Spark.
    encryption_error
        Why the executors' Python cannot encrypt. Empty if it can.
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
    """Collect the facts about this machine. Runs ``java -version`` and Pythons, and creates and removes a socket."""
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
    """Return the Python programs that the JVM starts the sidecars of the driver and of executors with.

    If none is configured, the sidecar of the driver runs with the application's Python, ``own``.
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
    """Parse ``spark-defaults.conf``: each line has a key and a value, separated by blanks, ``=`` or ``:``."""
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
    # In a separate process, because the libraries of transports start threads that are never stopped.
    answer, error = _answer(
        sys.executable, "import json; from penstock.sidecars.transfer.offers import survey; print(json.dumps(survey()))"
    )
    if answer is None:
        return {"tcp": f"the transports could not be tested: {error}"}
    found: dict[str, str] = json.loads(answer)
    return found


def _lacking(program: str, home: Path) -> dict[str, dict[str, str]]:
    """Find the packages that parts of PySpark need and that cannot be imported by an executor's Python worker.

    If the Python cannot be run, all packages are missing.
    """
    # Workers import PySpark from these archives if it is not installed.
    zips = sorted(str(path) for path in (home / "python" / "lib").glob("*.zip"))
    answer, error = _answer(program, _PROBE % (zips, NEEDS))
    if answer is None:
        return {part: dict.fromkeys(needs, error) for part, needs in NEEDS.items()}
    found: dict[str, dict[str, str]] = json.loads(answer)
    return found


def _answer(program: str, code: str) -> tuple[str | None, str]:
    """Run code in a Python program, and return its output and an empty string, or None and the error."""
    try:
        done = subprocess.run([program, "-c", code], capture_output=True, text=True, check=False, timeout=_SURVEY_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, str(error)
    if done.returncode:
        return None, done.stderr.strip().rpartition("\n")[2]
    return done.stdout.strip(), ""


def _socket_error() -> str | None:
    try:
        with tempfile.TemporaryDirectory(prefix="penstock-") as folder, socket.socket(socket.AF_UNIX) as unix:
            unix.bind(str(Path(folder) / "sidecar.sock"))
    except (OSError, AttributeError) as error:
        return str(error)
    return None
