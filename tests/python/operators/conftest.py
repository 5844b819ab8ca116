"""One Spark application with Penstock, shared by all tests of operators."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import penstock
import processors
import pytest
from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def application(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    # Python processes inherit the environment of the JVM: they must use this interpreter and find these modules.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    modules = str(Path(processors.__file__).parent)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [modules, os.environ.get("PYTHONPATH")]))
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("penstock-python-operators")
        .config("spark.ui.port", "0")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.sql.streaming.checkpointFileManagerClass", "io.penstock.LocalCheckpointFileManager")
        .config("spark.sql.streaming.numRecentProgressUpdates", "1000")
    )
    spark = penstock.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    yield spark
    spark.stop()
