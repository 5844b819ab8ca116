"""`penstock inspect` on checkpoints that real queries wrote."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from harness import PENSTOCK, SEED, run
from penstock.state.checkpoint import Checkpoint
from penstock.state.inspection import inspect
from penstock.state.verification import verify
from processors import SCHEMA, EventTimers
from pyspark.sql.functions import count, expr

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from penstock.state.layout import PinSlots
    from pyspark.sql import DataFrame, SparkSession


def counts(_: SparkSession, rows: DataFrame) -> DataFrame:
    return rows.groupBy("k").agg(count("*").alias("n"))


def join(_: SparkSession, rows: DataFrame) -> DataFrame:
    other = rows.selectExpr("k as k2", "v as v2", "ts as ts2")
    return rows.join(other, expr("k = k2 and v = v2 and ts = ts2"))


def timers(_: SparkSession, rows: DataFrame) -> DataFrame:
    return rows.groupBy("k").transformWithState(EventTimers(), SCHEMA, "Update", "EventTime")


def checkpoint_of(application: SparkSession, folder: Path, query: Callable) -> Path:
    conf = {"spark.sql.streaming.stateStore.minDeltasForSnapshot": "2"}
    if query is join:
        conf["spark.sql.streaming.unsupportedOperationCheck"] = "false"  # the harness uses update mode
    run(application, PENSTOCK, folder, query, conf)
    return folder / "checkpoint"


@pytest.mark.parametrize("query", [counts, join, timers], ids=lambda query: query.__name__)
def test_verify_accepts_an_intact_checkpoint_and_finds_each_damaged_file(
    query, application: SparkSession, tmp_path: Path
) -> None:
    path = checkpoint_of(application, tmp_path, query)
    found = inspect(Checkpoint(str(path)))
    verified = verify(Checkpoint(str(path)))
    assert verified.problems == []
    assert verified.sections > 0
    assert len(found.stores) == (4 if query is join else 1)
    assert any(shard.snapshot_version is not None for store in found.stores for shard in store.shards)

    source = random.Random(SEED)  # noqa: S311
    for file in found.files:
        target = path / "state" / "_penstock" / file.path
        intact = target.read_bytes()
        at = source.randrange(len(intact))
        target.write_bytes(intact[:at] + bytes([intact[at] ^ 0xFF]) + intact[at + 1 :])
        problems = verify(Checkpoint(str(path))).problems
        assert [p for p in problems if p.file == file.path], f"{file.path}, byte {at}, PENSTOCK_TEST_SEED={SEED}"
        target.write_bytes(intact)


def test_key_counts_equal_those_of_sparks_state_reader(application: SparkSession, tmp_path: Path) -> None:
    path = checkpoint_of(application, tmp_path, counts)
    rows = application.read.format("statestore").load(str(path)).groupBy("partition_id").count().collect()
    found = inspect(Checkpoint(str(path)))
    (store,) = found.stores
    assert store.operator == "stateStoreSave"
    routing_version = found.routing_versions[-1]
    ((_, pin_slots),) = routing_version.pin_slots.items()
    keys: Counter[int] = Counter()
    for shard in store.shards:
        keys[_state_partition(shard.shard, routing_version.shard_count, pin_slots)] += shard.keys
    assert dict(+keys) == {row["partition_id"]: row["count"] for row in rows}


def _state_partition(shard: int, shards: int, pin_slots: PinSlots) -> int:
    """Return the state partition that Spark's reader shows for a shard. Pinned keys belong to their base shard."""
    if shard < shards:
        return shard
    hash_ = pin_slots[shard - shards]
    return shard if hash_ is None else hash_ % shards
