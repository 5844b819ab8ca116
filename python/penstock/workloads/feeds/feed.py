"""Interface of a feed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class Feed(Protocol):
    """Delivers pieces of streams to a query. The rows of a stream keep their order."""

    def put(self, stream: str, piece: Path) -> None:
        """Deliver the rows of a Parquet file. Returns when the query can read them."""

    def read(self, spark: SparkSession, stream: str, schema: StructType) -> DataFrame:
        """Return a streaming DataFrame that reads a stream."""

    def stream_of(self, source: str) -> str:
        """Return the name of the stream that a source reads, from its description in a query's progress."""
