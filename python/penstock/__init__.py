"""Penstock: keep a Spark Structured Streaming query balanced while its load changes.

>>> import penstock
>>> from pyspark.sql import SparkSession
>>> spark = penstock.configure(SparkSession.builder).getOrCreate()  # doctest: +SKIP
"""

from importlib.metadata import version

from penstock.api.configure import configure
from penstock.api.errors import PenstockError
from penstock.api.reports import decisions, status
from penstock.api.running import pin, set, unpin  # noqa: A004

__version__ = version("penstock")

__all__ = ["PenstockError", "__version__", "configure", "decisions", "pin", "set", "status", "unpin"]
