"""Streams as folders of Parquet files."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class FileFeed:
    """A folder for each stream: Spark's file source sees a piece whole or not at all."""

    def __init__(self, folder: Path, streams: Iterable[str]) -> None:
        """Begin with nothing.

        Parameters
        ----------
        folder
            Receives a folder for each stream.
        streams
            Their names.
        """
        self._folder = folder
        for stream in streams:
            (folder / stream).mkdir(parents=True)

    def put(self, stream: str, piece: Path) -> None:
        """Let the query see the rows of a file."""
        hidden = self._folder / stream / f".{piece.name}"
        # Not linked: sources take files in the order of the times at which they were made.
        shutil.copyfile(piece, hidden)
        hidden.replace(self._folder / stream / piece.name)

    def read(self, spark: SparkSession, stream: str, schema: StructType) -> DataFrame:
        """Read a stream."""
        return spark.readStream.schema(schema).parquet(str(self._folder / stream))

    def stream_of(self, source: str) -> str:
        """Name the stream of ``FileStreamSource[FOLDER/STREAM]``."""
        return Path(source.rstrip("]")).name
