"""Runs suites in a JVM. If the JVM crashes or is halted, another JVM runs the remaining suites."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bed import RUNNER, Bed

OPENED = {
    "java.base": (
        "java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio java.util java.util.concurrent "
        "java.util.concurrent.atomic jdk.internal.ref sun.nio.ch sun.nio.cs sun.security.action sun.util.calendar"
    ),
    "java.security.jgss": "sun.security.krb5",
}
"""Packages that Spark's launcher and build open on Java 17."""

TEST_PROPERTIES = {
    "derby.system.durability": "test",
    "file.encoding": "UTF-8",
    "io.netty.allocator.type": "pooled",
    "io.netty.tryReflectionSetAccessible": "true",
    "java.net.preferIPv6Addresses": "false",
    "jdk.reflect.useDirectMethodHandle": "false",
    "spark.master.rest.enabled": "false",
    "spark.memory.debugFill": "true",
    "spark.port.maxRetries": "100",
    "spark.testing": "1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.unsafe.exceptionOnMemoryLeak": "true",
}
"""System properties that Spark's own build sets for its tests."""


@dataclass(frozen=True)
class Settings:
    """How the suites are run.

    Attributes
    ----------
    plugin
        The assembled plugin jar, or None to run Spark without a plugin.
    agent
        Argument of the Java agent: see SuiteAgent.java.
    conf
        Spark settings. They are set as system properties, so every `SparkConf` of the tests has them.
    limit
        Seconds that one suite may take.
    heap
        Size of the JVM's heap, as -Xmx takes it.
    only
        Part of a test name. Only tests whose names contain it are run.
    """

    plugin: Path | None
    agent: str
    conf: Mapping[str, str]
    limit: int
    heap: str
    only: str | None = None


def run(bed: Bed, suites: Sequence[str], settings: Settings) -> Iterator[dict[str, Any]]:
    """Runs suites (full class names) in turn.

    Returns
    -------
    Iterator of dict
        The events that SuiteLog.java writes. They are returned after the end of each JVM.
    """
    directory = Path(tempfile.mkdtemp(prefix="run-", dir=bed.work))
    log = directory / "events.jsonl"
    log.touch()
    (directory / "tmp").mkdir()
    home = _spark_home(bed, directory)
    command = _command(bed, directory, settings)
    environment = _environment(bed, settings)
    print(f"spark-suites: {len(suites)} suites, output in {directory}", file=sys.stderr, flush=True)
    left, read = list(suites), 0
    while left:
        arguments = [argument for suite in left for argument in ("-s", suite)]
        if settings.only is not None:
            arguments += ["-z", settings.only]
        with (directory / "output.txt").open("ab") as output:
            subprocess.run(
                [*command, *arguments], cwd=home, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, check=False,
            )  # fmt: skip
        events = _events(log)
        yield from events[read:]
        read = len(events)
        started = {event["suite"] for event in events if event["event"] == "suite_start"}
        remaining = [suite for suite in left if suite not in started]
        if len(remaining) == len(left):
            tail = (directory / "output.txt").read_text(errors="replace")[-2000:]
            print(f"spark-suites: the JVM ended before a suite began:\n{tail}", file=sys.stderr)
            return
        left = remaining


def _command(bed: Bed, directory: Path, settings: Settings) -> list[str]:
    properties = {
        **TEST_PROPERTIES,
        "java.io.tmpdir": str(directory / "tmp"),
        "log4j2.configurationFile": str(RUNNER / "log4j2.properties"),
        "spark.test.home": str(directory / "home"),
        "suites.limit.s": str(settings.limit),
        "suites.log": str(directory / "events.jsonl"),
        "suites.directory": str(directory),
        **settings.conf,
    }
    opens = [
        f"--add-opens={module}/{package}=ALL-UNNAMED"
        for module, packages in OPENED.items()
        for package in packages.split()
    ]
    return [
        "java", "-ea", "-Xss4m", f"-Xmx{settings.heap}", f"-javaagent:{bed.agent}={settings.agent}",
        "--add-modules=jdk.incubator.vector", *opens,
        *(f"-D{key}={value}" for key, value in properties.items()),
        "-cp", _classpath(bed, settings), "org.scalatest.tools.Runner", "-C", "SuiteLog",
    ]  # fmt: skip


def _classpath(bed: Bed, settings: Settings) -> str:
    own = [bed.runner_classes, bed.resources]
    if settings.plugin is not None:
        own = [bed.wrapper_classes, *own, settings.plugin]
    return ":".join(map(str, [*own, *bed.classpath]))


def _environment(bed: Bed, settings: Settings) -> dict[str, str]:
    inherited = {key: value for key, value in os.environ.items() if key not in {"SPARK_HOME", "SPARK_CONF_DIR"}}
    return {
        **inherited,
        "LC_ALL": "C.UTF-8",
        "SPARK_DIST_CLASSPATH": _classpath(bed, settings),  # executors of local-cluster masters
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SCALA_VERSION": "2.13",
        "SPARK_TESTING": "1",
        "TZ": "UTC",
    }


def _spark_home(bed: Bed, directory: Path) -> Path:
    """Creates a working directory in which tests find src/test/resources of their modules."""
    home = directory / "home"
    for module in ("core", "sql/catalyst", "sql/core"):
        (home / module / "src/test").mkdir(parents=True)
        (home / module / "src/test/resources").symlink_to(bed.resources)
    return home


def _events(log: Path) -> list[dict[str, Any]]:
    """Returns the events of all complete lines. A crash may cut the last line off."""
    events = []
    for line in log.read_text(errors="replace").splitlines():
        try:
            events.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return events
