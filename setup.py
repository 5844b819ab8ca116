"""Build of the wheel: the package with its jars, and the bridge jar where PySpark's class path finds it."""

import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
JARS = ROOT / "python" / "penstock" / "jars"


class BuildWithBridge(build_py):
    """Puts the bridge jar into `pyspark/jars`, which is on the class path of every PySpark application."""

    def run(self) -> None:
        """Copy packages, then the bridge; an editable installation gets no bridge."""
        super().run()
        if self.editable_mode:
            return
        bridges = list(JARS.glob("penstock-bridge-*.jar"))
        if len(bridges) != 1:
            raise SystemExit(f"expected one bridge jar in {JARS}, found {len(bridges)}: run `make jar`")
        target = Path(self.build_lib) / "pyspark" / "jars"
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy2(bridges[0], target)


setup(
    version=(ROOT / "VERSION").read_text().strip(),
    package_dir={"": "python"},
    packages=find_packages("python"),
    package_data={"penstock": ["jars/penstock-spark-*.jar", "_configuration.json", "py.typed"]},
    cmdclass={"build_py": BuildWithBridge},
)
