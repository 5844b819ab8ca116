"""Find the installed jar for a Spark version."""

import re
from pathlib import Path

from penstock.api.errors import PenstockError

INSTALLED = Path(__file__).resolve().parent.parent / "jars"
_NAME = re.compile(r"penstock-spark-(\d+\.\d+)_2\.13-.+\.jar")


def jar_for(spark_version: str, folder: Path = INSTALLED) -> Path:
    """Find the jar for a Spark version.

    Parameters
    ----------
    spark_version
        Version of Spark, such as ``"4.2.0"``. Its patch number is ignored.
    folder
        Folder that contains the jars.

    Raises
    ------
    PenstockError
        ``PENSTOCK_UNSUPPORTED_SPARK`` if no jar is for this version, ``PENSTOCK_JAR_NOT_FOUND`` if the folder has no
        jars.
    """
    jars = {m[1]: path for path in sorted(folder.glob("*.jar")) if (m := _NAME.fullmatch(path.name))}
    if not jars:
        raise PenstockError(
            "PENSTOCK_JAR_NOT_FOUND",
            f"There are no jars in {folder}. Install the wheel again; in a source checkout, run `make jar`.",
        )
    minor = ".".join(spark_version.split(".")[:2])
    if minor not in jars:
        supported = " and ".join(sorted(jars))
        raise PenstockError(
            "PENSTOCK_UNSUPPORTED_SPARK",
            f"This is Spark {spark_version}, but the installed Penstock supports Spark {supported}. Install one of "
            "these.",
        )
    return jars[minor]
