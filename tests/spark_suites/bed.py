"""What Spark's suites need before they can run: class path, resources, compiled runner and wrappers.

Everything is created once in a work directory and reused. Published artifacts are the only input.
"""

import shutil
import subprocess
import zipfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
RUNNER = HERE / "runner"
WRAPPERS = HERE / "wrappers"
UNIT_TESTS = HERE.parents[1] / "jvm/src/test/scala/org/apache/spark/sql/penstock"
STANDALONE_PROVIDER = (UNIT_TESTS / "state/StandaloneProvider.scala", UNIT_TESTS / "commit/Commits.scala")
"""The provider that needs no query, and its commits. They are in the unit tests, not in the plugin jar."""

PREREQUISITES = {"java": "openjdk-17-jdk-headless", "javac": "openjdk-17-jdk-headless", "mvn": "maven"}
"""Required commands, each with the Debian package that contains it."""


class SetupError(Exception):
    """The suites cannot be run here. The message says why and what to do."""


@dataclass(frozen=True)
class Bed:
    """A prepared work directory.

    Attributes
    ----------
    work
        Path of the directory.
    classpath
        Spark, its tests and their libraries, in order.
    agent
        The jar of the Java agent.
    """

    work: Path
    classpath: tuple[Path, ...]
    agent: Path

    @property
    def runner_classes(self) -> Path:
        """Classes of the reporter and the agent."""
        return self.work / "runner"

    @property
    def resources(self) -> Path:
        """Resources of the test jars as plain files."""
        return self.work / "resources"

    @property
    def wrapper_classes(self) -> Path:
        """Classes of the wrapper suites, once `compile_wrappers` has run."""
        return self.work / "wrappers"

    def test_jars(self) -> list[Path]:
        """The jars that contain Spark's tests."""
        return [path for path in self.classpath if path.name.endswith("-tests.jar")]

    def index(self) -> dict[str, list[str]]:
        """Full class names of all suites by their last part, those below `org.apache.spark.sql` first."""
        names = [path.relative_to(self.wrapper_classes).as_posix() for path in self.wrapper_classes.rglob("*.class")]
        for jar in self.test_jars():
            with zipfile.ZipFile(jar) as archive:
                names += archive.namelist()
        index: dict[str, list[str]] = {}
        for name in sorted(names, key=lambda n: (not n.startswith("org/apache/spark/sql/"), n)):
            if name.endswith(".class") and "Suite" in name and "$" not in name:
                full = name.removesuffix(".class").replace("/", ".")
                index.setdefault(full.rpartition(".")[2], []).append(full)
        return index


def prepare(work: Path, spark: str) -> Bed:
    """Prepares the work directory for one Spark version, unless that was done before.

    Parameters
    ----------
    work
        Folder with a work directory for each Spark version.
    spark
        Spark's full version; its test jars must be published.

    Raises
    ------
    SetupError
        A command is missing, or the class path cannot be resolved.
    """
    for command, package in PREREQUISITES.items():
        if shutil.which(command) is None:
            raise SetupError(f"{command} is not installed; on Debian: apt install {package}")
    directory = work / spark
    directory.mkdir(parents=True, exist_ok=True)
    bed = Bed(directory, _resolve(directory, spark), directory / "agent.jar")
    _unpack_resources(bed)
    _compile_runner(bed)
    return bed


def compile_wrappers(bed: Bed, plugin: Path) -> None:
    """Compiles our own suites, and the provider they test, against Spark's tests and the plugin.

    Raises
    ------
    SetupError
        The suites do not compile.
    """
    sources = [*sorted(WRAPPERS.glob("*.scala")), *STANDALONE_PROVIDER]
    stamp = bed.work / "wrappers.ok"
    if _newer(stamp, [*sources, plugin]):
        return
    shutil.rmtree(bed.wrapper_classes, ignore_errors=True)
    bed.wrapper_classes.mkdir()
    libraries = _path(bed.classpath)
    _run(
        "java", "-Xss8m", "-Xmx2g", "-cp", libraries, "scala.tools.nsc.Main", "-nowarn", "-release", "17",
        "-cp", f"{plugin}:{libraries}", "-d", str(bed.wrapper_classes), *map(str, sources),
        failure="the wrapper suites do not compile against this plugin jar",
    )  # fmt: skip
    stamp.touch()


def _resolve(directory: Path, spark: str) -> tuple[Path, ...]:
    listing = directory / "classpath.txt"
    pom = RUNNER / "pom.xml"
    if not _newer(listing, [pom]):
        partial = directory / "classpath.partial"
        _run(
            "mvn", "-q", "-B", "-f", str(pom), f"-Dspark.version={spark}", "dependency:build-classpath",
            f"-Dmdep.outputFile={partial}",
            failure=f"mvn could not resolve the class path of Spark {spark}; is a Maven repository reachable?",
        )  # fmt: skip
        partial.replace(listing)
    return tuple(Path(entry) for entry in listing.read_text().strip().split(":"))


def _unpack_resources(bed: Bed) -> None:
    """Tests turn resource addresses into files, which fails inside a jar."""
    if bed.resources.is_dir():
        return
    partial = bed.work / "resources.partial"
    shutil.rmtree(partial, ignore_errors=True)
    for jar in reversed(bed.test_jars()):  # the first entry on the class path wins
        with zipfile.ZipFile(jar) as archive:
            archive.extractall(partial, [n for n in archive.namelist() if not n.endswith(".class")])
    partial.rename(bed.resources)


def _compile_runner(bed: Bed) -> None:
    sources = sorted(RUNNER.glob("*.java"))
    if _newer(bed.agent, sources):
        return
    shutil.rmtree(bed.runner_classes, ignore_errors=True)
    bed.runner_classes.mkdir()
    _run(
        "javac", "-nowarn", "-cp", _path(bed.classpath), "-d", str(bed.runner_classes), *map(str, sources),
        failure="the runner's own classes do not compile",
    )  # fmt: skip
    with zipfile.ZipFile(bed.agent, "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\nPremain-Class: SuiteAgent\n")
        for compiled in bed.runner_classes.glob("SuiteAgent*.class"):
            jar.write(compiled, compiled.name)


def _newer(made: Path, sources: list[Path]) -> bool:
    return made.exists() and all(source.stat().st_mtime <= made.stat().st_mtime for source in sources)


def _path(entries: tuple[Path, ...]) -> str:
    return ":".join(map(str, entries))


def _run(*command: str, failure: str) -> None:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0:
        raise SetupError(f"{failure}\n{done.stdout[-4000:]}")
