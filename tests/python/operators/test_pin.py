"""Pinning of keys by an application."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

import penstock
import pytest
from harness import PENSTOCK, Engine, counting, write_events

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_a_pinned_key_gets_its_own_shard_and_an_unpinned_key_returns(application: SparkSession, tmp_path: Path) -> None:
    session = Engine(PENSTOCK.provider, PENSTOCK.partitions).session(application)
    one_pin = counting(session, tmp_path, "complete").option("penstock.pinned.max", "1")
    query = one_pin.queryName("pinned").format("memory").start()
    source = tmp_path / "source"

    def pinned_in_the_next_batch(number: int) -> int:
        write_events(source, number, rows=60)
        query.processAllAvailable()
        pinned: int = penstock.status(query)["regions"][0]["pinned"]
        return pinned

    try:
        assert pinned_in_the_next_batch(0) == 0
        penstock.pin(query, 1)
        assert pinned_in_the_next_batch(1) == 1
        with pytest.raises(penstock.PenstockError, match=r"penstock\.pinned\.max=1") as caught:
            penstock.pin(query, 2)
        assert caught.value.error_class == "PENSTOCK_CANNOT_PIN"
        with pytest.raises(penstock.PenstockError, match=r"keys of other types \(region 0: BIGINT\)") as caught:
            penstock.unpin(query, 1, 5)
        assert caught.value.error_class == "PENSTOCK_NO_SUCH_KEY"
        for key in ("1", 1.0, True, datetime.date(2001, 1, 1)):
            with pytest.raises(penstock.PenstockError, match="was not pinned: the query has keys of other types"):
                penstock.pin(query, key)
        with pytest.raises(penstock.PenstockError, match="Spark has no type for a value of type object") as caught:
            penstock.pin(query, object())
        assert caught.value.error_class == "PENSTOCK_NO_SUCH_KEY"
        penstock.unpin(query, 1)
        assert pinned_in_the_next_batch(2) == 0
        counted = session.read.schema("k long").json(str(source)).groupBy("k").count()
        assert sorted(session.table("pinned").collect()) == sorted(counted.collect())
    finally:
        query.stop()
    with pytest.raises(penstock.PenstockError) as caught:
        penstock.pin(query, 1)
    assert caught.value.error_class == "PENSTOCK_NOT_RUNNING"
