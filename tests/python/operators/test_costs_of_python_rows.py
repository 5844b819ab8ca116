"""Cost of rows in Python operators, whose time a task cannot book to single rows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pandas as pd
import penstock
from harness import PENSTOCK, Engine, put
from pyspark.sql.streaming.state import GroupStateTimeout

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

KEYS = 40
EXPENSIVE = 7
BATCHES = 60


def count(key: tuple[int], batches: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
    rows = sum(len(batch) for batch in batches)
    # The sleep is the workload: a key costs the same on a busy machine as on an idle one. The expensive key costs as
    # much as 150 others, far more than the noise of other processes, so a third of the batches is enough to find it.
    time.sleep(0.6 if key[0] == EXPENSIVE else 0.004)
    (before,) = state.getOption or (0,)
    state.update((before + rows,))
    yield pd.DataFrame({"k": [key[0]], "n": [before + rows]})


def test_an_expensive_key_shares_its_task_with_few_other_keys(application: SparkSession, tmp_path: Path) -> None:
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
            # The frequencies of keys change with every batch, so that the binding changes.
            rows = [k for k in range(KEYS) for _ in range(1 + (k * 7 + number * 11) % 13)]
            put(source / f"{number:03d}.json", "\n".join(f'{{"k": {k}}}' for k in rows))
            query.processAllAvailable()
            status = penstock.status(query)
            assert status is not None
            region = status["regions"][0]
            # If rows cost the same, the expensive key's task would get as many rows as the others.
            if region["imbalance"] > 1.25:
                break
        else:
            raise AssertionError(f"the cost of the expensive key was not found: {region}")
    finally:
        query.stop()
    assert answers == {k: sum(1 + (k * 7 + n * 11) % 13 for n in range(number + 1)) for k in range(KEYS)}
