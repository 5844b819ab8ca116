"""A feed that delivers each stream as a folder of Parquet files."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class FileFeed:
    """Delivers each stream as a folder of files. Spark's file source never sees a part of a piece."""

    def __init__(self, folder: Path, streams: Iterable[str]) -> None:
        """Create an empty folder for each stream.

        Parameters
        ----------
        folder
            Folder in which the folders of the streams are created.
        streams
            Names of the streams.
        """
        self._folder = folder
        for stream in streams:
            (folder / stream).mkdir(parents=True)

    def put(self, stream: str, piece: Path) -> None:
        """Deliver the rows of a file."""
        hidden = self._folder / stream / f".{piece.name}"
        # Copied and not linked, because the file source reads files in the order of their modification times.
        shutil.copyfile(piece, hidden)
        hidden.replace(self._folder / stream / piece.name)

    def read(self, spark: SparkSession, stream: str, schema: StructType) -> DataFrame:
        """Return a streaming DataFrame that reads a stream."""
        return spark.readStream.schema(schema).parquet(str(self._folder / stream))

    def stream_of(self, source: str) -> str:
        """Return the name of the stream from ``FileStreamSource[FOLDER/STREAM]``."""
        return Path(source.rstrip("]")).name
