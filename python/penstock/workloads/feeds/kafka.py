"""Streams as topics of Kafka."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from penstock.api.errors import PenstockError

if TYPE_CHECKING:
    from types import TracebackType

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

LIMIT_S = 20.0
"""For each answer of the broker."""


def require_broker(address: str) -> None:
    """Ask a broker whether it is there.

    Raises
    ------
    PenstockError
        ``PENSTOCK_KAFKA`` where it does not answer.
    """
    try:
        AdminClient({"bootstrap.servers": address, "log_level": 0}).list_topics(timeout=LIMIT_S)
    except KafkaException as e:
        raise _error(address, "answer", e.args[0].str()) from e


def _error(address: str, what: str, why: str) -> PenstockError:
    return PenstockError(
        "PENSTOCK_KAFKA",
        f"The Kafka broker at {address} did not {what}: {why}. Name one with --kafka that answers without "
        "authentication or encryption, or give --kafka without an address to start one.",
    )


class KafkaFeed:
    """A topic for each stream, its rows as JSON.

    Each topic has one partition. Rows of several would come to the query out of their order, by up to a piece: hours of
    event time where days are played in seconds, and a watermark would take them for late.
    """

    def __init__(self, address: str, pieces: Mapping[str, Sequence[Path]]) -> None:
        """Make the topics.

        Parameters
        ----------
        address
            Of a broker, ``HOST:PORT``.
        pieces
            By stream, the Parquet files that will be put. Their rows are encoded here, before a clock runs.

        Raises
        ------
        PenstockError
            ``PENSTOCK_KAFKA`` where the broker does not answer, or refuses.
        """
        self._address = address
        self._rows = {piece: _encode(piece) for files in pieces.values() for piece in files}
        # A name of its own for each run: brokers are shared.
        run = f"penstock-demo-{uuid.uuid4().hex[:12]}"
        self._topics = {stream: f"{run}-{stream}" for stream in pieces}
        client: dict[str, str | int | float | bool] = {"bootstrap.servers": address, "log_level": 0}
        self._producer = Producer({**client, "linger.ms": 5, "acks": "all", "enable.idempotence": True})
        self._admin = AdminClient(client)
        self._make_topics()

    def __enter__(self) -> KafkaFeed:
        """Give the feed."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Delete the topics; nothing where the broker has gone."""
        for done in self._admin.delete_topics(list(self._topics.values()), operation_timeout=LIMIT_S).values():
            try:
                done.result(LIMIT_S)
            except (KafkaException, TimeoutError):
                return

    def put(self, stream: str, piece: Path) -> None:
        """Send the rows of a file; back when the broker has all.

        Raises
        ------
        PenstockError
            ``PENSTOCK_KAFKA`` where it has not, after 20 seconds.
        """
        failed: list[KafkaError] = []

        def taken(error: KafkaError | None, _: object) -> None:
            if error is not None:
                failed.append(error)

        for row in self._rows[piece]:
            self._producer.produce(self._topics[stream], row, on_delivery=taken)
        missing = self._producer.flush(LIMIT_S)
        if missing or failed:
            why = failed[0].str() if failed else f"{missing} are missing after {LIMIT_S:g} s"
            raise _error(self._address, f"take all rows of {piece.name}", why)

    def read(self, spark: SparkSession, stream: str, schema: StructType) -> DataFrame:
        """Read a stream."""
        from pyspark.sql import functions as sf  # noqa: PLC0415, Spark is not needed to put rows

        return (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", self._address)
            .option("subscribe", self._topics[stream])
            .option("startingOffsets", "earliest")
            .load()
            .select(sf.from_json(sf.col("value").cast("string"), schema).alias("row"))
            .select("row.*")
        )

    def stream_of(self, source: str) -> str:
        """Name the stream of ``KafkaV2[Subscribe[TOPIC]]``."""
        return next(stream for stream, topic in self._topics.items() if f"[{topic}]" in source)

    def _make_topics(self) -> None:
        topics = [NewTopic(topic, num_partitions=1, replication_factor=1) for topic in self._topics.values()]
        try:
            for done in self._admin.create_topics(topics, operation_timeout=LIMIT_S).values():
                done.result(LIMIT_S)
        except KafkaException as e:
            raise _error(self._address, f"make topics {', '.join(self._topics.values())}", e.args[0].str()) from e


def _encode(piece: Path) -> list[bytes]:
    return [json.dumps(row, default=datetime.isoformat).encode() for row in pq.read_table(piece).to_pylist()]
