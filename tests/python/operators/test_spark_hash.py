"""The hash functions of the planners equal Spark's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from penstock.planning.spark_hash import hash_ints, hash_longs, hash_strings, partition
from pyspark.sql import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 500


def arrow_buffers(strings: list[str]) -> tuple[np.ndarray, np.ndarray]:
    encoded = [s.encode() for s in strings]
    return np.cumsum([0, *map(len, encoded)]), np.frombuffer(b"".join(encoded), dtype=np.uint8)


def test_hashes_and_partitions_equal_those_of_spark(application: SparkSession) -> None:
    random = np.random.default_rng(7)
    longs = [0, -1, 2**63 - 1, -(2**63), *random.integers(-(2**63), 2**63, ROWS, dtype=np.int64).tolist()]
    ints = [int(np.int32(x & 0x7FFFFFFF)) * (1 if x % 2 else -1) for x in longs]
    strings = ["", "ORD", "Zürich", "名古屋", *("x€"[x % 2] * (abs(x) % 23) for x in longs[4:])]
    rows = application.createDataFrame(list(zip(longs, ints, strings, strict=True)), "l long, i int, s string")
    found = rows.select("l", "i", "s", sf.hash("l"), sf.hash("i"), sf.hash("s"), sf.hash("l", "s")).collect()
    long_hashes = hash_longs(np.array([r[0] for r in found], dtype=np.int64))
    assert long_hashes.tolist() == [r[3] for r in found]
    assert hash_ints(np.array([r[1] for r in found], dtype=np.int32)).tolist() == [r[4] for r in found]
    assert hash_strings(*arrow_buffers([r[2] for r in found])).tolist() == [r[5] for r in found]
    both = [hash_strings(*arrow_buffers([r[2]]), seed=int(h))[0] for r, h in zip(found[:20], long_hashes, strict=False)]
    assert both == [r[6] for r in found[:20]]

    placed = rows.repartition(7, "s").select("s", sf.spark_partition_id()).collect()
    assert partition(hash_strings(*arrow_buffers([r[0] for r in placed])), 7).tolist() == [r[1] for r in placed]
