"""What rows cost in an operator of Python, whose time no task can book to rows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pandas as pd
import penstock
from harness import PENSTOCK, Engine
from pyspark.sql.streaming.state import GroupStateTimeout

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

KEYS = 40
DEAR = 7
BATCHES = 60


def count(key: tuple[int], batches: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
    rows = sum(len(batch) for batch in batches)
    time.sleep(0.2 if key[0] == DEAR else 0.004)
    (before,) = state.getOption or (0,)
    state.update((before + rows,))
    yield pd.DataFrame({"k": [key[0]], "n": [before + rows]})


def test_a_dear_key_gets_a_task_with_few_others(application: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    session = Engine(PENSTOCK.provider, PENSTOCK.partitions).session(application)
    answers: dict[int, int] = {}

    def keep(rows: DataFrame, _: int) -> None:
        answers.update({row["k"]: row["n"] for row in rows.collect()})

    query = (
        session.readStream.schema("k long")
        .option("maxFilesPerTrigger", 1)
        .json(str(source))
        .groupBy("k")
        .applyInPandasWithState(count, "k long, n long", "n long", "update", GroupStateTimeout.NoTimeout)
        .writeStream.outputMode("update")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .option("penstock.tasks", "4")
        .foreachBatch(keep)
        .start()
    )
    try:
        for number in range(BATCHES):
            # Other keys are more or less frequent in each batch, so that shards are bound anew.
            rows = [k for k in range(KEYS) for _ in range(1 + (k * 7 + number * 11) % 13)]
            (source / f"{number:03d}.json").write_text("\n".join(f'{{"k": {k}}}' for k in rows))
            query.processAllAvailable()
            status = penstock.status(query)
            assert status is not None
            region = status["regions"][0]
            # By rows its task would have no fewer than the others.
            if region["imbalance"] > 1.25:
                break
        else:
            raise AssertionError(f"the dear key is not known: {region}")
    finally:
        query.stop()
    assert answers == {k: sum(1 + (k * 7 + n * 11) % 13 for n in range(number + 1)) for k in range(KEYS)}
