"""A feed that delivers each stream as a Kafka topic."""

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
"""Timeout of each request to the broker, in seconds."""


def require_broker(address: str) -> None:
    """Check that a broker answers.

    Raises
    ------
    PenstockError
        ``PENSTOCK_KAFKA`` if it does not answer.
    """
    try:
        AdminClient({"bootstrap.servers": address, "log_level": 0}).list_topics(timeout=LIMIT_S)
    except KafkaException as e:
        raise _error(address, "answer", e.args[0].str()) from e


def _error(address: str, action: str, reason: str) -> PenstockError:
    return PenstockError(
        "PENSTOCK_KAFKA",
        f"The Kafka broker at {address} did not {action}: {reason}. Set --kafka to a broker that accepts clients "
        "without authentication and encryption, or pass --kafka without an address to start a broker.",
    )


class KafkaFeed:
    """Delivers each stream as a topic whose messages are rows as JSON.

    Each topic has one partition. From several partitions, a query would receive rows out of order by up to a piece.
    That is hours of event time when days are replayed in seconds, so the watermark would drop rows as late.
    """

    def __init__(self, address: str, pieces: Mapping[str, Sequence[Path]]) -> None:
        """Create the topics.

        Parameters
        ----------
        address
            Address of the broker, ``HOST:PORT``.
        pieces
            Parquet files that will be delivered, by stream. Their rows are encoded now, before the replay starts.

        Raises
        ------
        PenstockError
            ``PENSTOCK_KAFKA`` if the broker does not answer, or does not create the topics.
        """
        self._address = address
        self._rows = {piece: _encode(piece) for files in pieces.values() for piece in files}
        # Brokers are shared, so each run uses unique topic names.
        run = f"penstock-demo-{uuid.uuid4().hex[:12]}"
        self._topics = {stream: f"{run}-{stream}" for stream in pieces}
        client: dict[str, str | int | float | bool] = {"bootstrap.servers": address, "log_level": 0}
        self._producer = Producer({**client, "linger.ms": 5, "acks": "all", "enable.idempotence": True})
        self._admin = AdminClient(client)
        self._create_topics()

    def __enter__(self) -> KafkaFeed:
        """Return the feed."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Delete the topics. Errors are ignored, because the broker may have ended."""
        for done in self._admin.delete_topics(list(self._topics.values()), operation_timeout=LIMIT_S).values():
            try:
                done.result(LIMIT_S)
            except (KafkaException, TimeoutError):
                return

    def put(self, stream: str, piece: Path) -> None:
        """Send the rows of a file. Returns when the broker has acknowledged all of them.

        Raises
        ------
        PenstockError
            ``PENSTOCK_KAFKA`` if it has not acknowledged them after 20 seconds.
        """
        failed: list[KafkaError] = []

        def on_delivery(error: KafkaError | None, _: object) -> None:
            if error is not None:
                failed.append(error)

        for row in self._rows[piece]:
            self._producer.produce(self._topics[stream], row, on_delivery=on_delivery)
        missing = self._producer.flush(LIMIT_S)
        if missing or failed:
            reason = failed[0].str() if failed else f"{missing} rows are missing after {LIMIT_S:g} s"
            raise _error(self._address, f"accept all rows of {piece.name}", reason)

    def read(self, spark: SparkSession, stream: str, schema: StructType) -> DataFrame:
        """Return a streaming DataFrame that reads a stream."""
        from pyspark.sql import functions as sf  # noqa: PLC0415, Spark is not needed to deliver rows

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
        """Return the name of the stream from ``KafkaV2[Subscribe[TOPIC]]``."""
        return next(stream for stream, topic in self._topics.items() if f"[{topic}]" in source)

    def _create_topics(self) -> None:
        topics = [NewTopic(topic, num_partitions=1, replication_factor=1) for topic in self._topics.values()]
        try:
            for done in self._admin.create_topics(topics, operation_timeout=LIMIT_S).values():
                done.result(LIMIT_S)
        except KafkaException as e:
            raise _error(self._address, f"create topics {', '.join(self._topics.values())}", e.args[0].str()) from e


def _encode(piece: Path) -> list[bytes]:
    return [json.dumps(row, default=datetime.isoformat).encode() for row in pq.read_table(piece).to_pylist()]
