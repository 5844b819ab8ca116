"""One Spark application with Penstock for all tests of operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import penstock
import processors
import pytest
from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def application(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("penstock-python-operators")
        .config("spark.ui.enabled", "false")
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
    # Python workers unpickle what it defines.
    spark.sparkContext.addPyFile(processors.__file__)
    yield spark
    spark.stop()
