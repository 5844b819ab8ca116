"""Streams of the demonstration as Kafka topics, with a real broker."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient
from penstock.api.errors import PenstockError
from penstock.demo.kafka import kafka
from penstock.workloads.feeds import kafka as kafka_feed
from penstock.workloads.feeds.kafka import KafkaFeed

JARS = Path(__file__).parents[3] / ".work" / "kafka"

# Kafka's jars come with those of Spark's connector, which is published for 4.2 only.
pytestmark = pytest.mark.skipif(not pyspark.__version__.startswith("4.2."), reason="no connector for this Spark")


def piece(folder, name, rows):
    path = folder / name
    pq.write_table(pa.table({"n": list(rows), "text": [f"{n}\n\u00fc" for n in rows]}), path)
    return path


def received(address, topic, rows):
    consumer = Consumer({"bootstrap.servers": address, "group.id": "test", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        return [json.loads(message.value()) for message in consumer.consume(rows, timeout=30)]
    finally:
        consumer.close()


def test_rows_arrive_in_order_and_topics_are_deleted_at_the_end(tmp_path):
    pieces = {"a": [piece(tmp_path, "0", range(5000)), piece(tmp_path, "1", range(5000, 5003))], "b": []}
    with kafka(None, JARS, tmp_path) as running:
        topics = AdminClient({"bootstrap.servers": running.address})
        with KafkaFeed(running.address, pieces) as feed:
            for file in pieces["a"]:
                feed.put("a", file)
            created = {name for name in topics.list_topics().topics if name.startswith("penstock-demo-")}
            assert len(created) == 2
            topic_a = next(name for name in created if name.endswith("-a"))
            assert feed.stream_of(f"KafkaV2[Subscribe[{topic_a}]]") == "a"
            assert received(running.address, topic_a, 5003) == [{"n": n, "text": f"{n}\n\u00fc"} for n in range(5003)]
        assert not created & set(topics.list_topics().topics)


def test_rows_that_a_stopped_broker_did_not_accept_are_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(kafka_feed, "LIMIT_S", 2.0)
    pieces = {"a": [piece(tmp_path, "0", range(3))]}
    with kafka(None, JARS, tmp_path) as running:
        feed = KafkaFeed(running.address, pieces)
        feed.put("a", pieces["a"][0])
    with pytest.raises(PenstockError, match="did not accept all rows of 0: 3 rows are missing after 2 s"):
        feed.put("a", pieces["a"][0])
    feed.__exit__(None, None, None)
