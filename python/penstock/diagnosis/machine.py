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
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from penstock.api.jars import INSTALLED

_SURVEY_S = 60.0
PACKAGES = ("pyspark", "numpy", "numba", "pyarrow", "pandas", "google-crc32c")


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


def look() -> Machine:
    """Look at this machine; starts ``java -version``, and makes and removes a socket."""
    packages = {name: _version(name) for name in PACKAGES}
    home = _spark_home()
    file = _defaults_file(home)
    return Machine(
        platform.python_version(),
        _java(),
        packages,
        None if home is None else str(home),
        None if home is None else _spark_version(home, packages["pyspark"]),
        tuple(sorted(path.name for path in INSTALLED.glob("penstock-*.jar"))),
        home is not None and any((home / "jars").glob("penstock-bridge-*.jar")),
        {} if file is None else read_defaults(file.read_text(encoding="utf-8", errors="replace")),
        None if file is None else str(file),
        _socket_error(),
        _transports(),
    )


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
    code = "import json; from penstock.courier.offers import survey; print(json.dumps(survey()))"
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=_SURVEY_S
        )
        found: dict[str, str] = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        return {"tcp": f"the sidecars' program does not run: {error}"}
    return found


def _socket_error() -> str | None:
    try:
        with tempfile.TemporaryDirectory(prefix="penstock-") as folder, socket.socket(socket.AF_UNIX) as made:
            made.bind(str(Path(folder) / "sidecar.sock"))
    except (OSError, AttributeError) as error:
        return str(error)
    return None
