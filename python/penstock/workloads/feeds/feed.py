"""What carries the rows of streams to a query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class Feed(Protocol):
    """Carries pieces of streams to where a query reads them; the rows of a stream stay in their order."""

    def put(self, stream: str, piece: Path) -> None:
        """Let the query see the rows of a Parquet file; back when it can."""

    def read(self, spark: SparkSession, stream: str, schema: StructType) -> DataFrame:
        """Read a stream."""

    def stream_of(self, source: str) -> str:
        """Name the stream of a source, out of its description in a query's progress."""
