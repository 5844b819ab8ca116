"""Read from Spark's status store how many rows the tasks of a streaming query read in each batch."""

import re
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

_BATCH = re.compile(r"batch = (\d+)")
_ALL_TASKS = 1_000_000


@dataclass(frozen=True)
class StageLoad:
    """The tasks of one stage that read a shuffle.

    Parameters
    ----------
    rows
        Number of rows that each task read.
    """

    rows: tuple[int, ...]

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return len(self.rows)

    @property
    def imbalance(self) -> float:
        """Rows of the busiest task over the mean. 1 if there are no rows."""
        total = sum(self.rows)
        return max(self.rows) * len(self.rows) / total if total else 1.0


def shuffle_loads(spark: SparkSession, run_id: str) -> dict[int, StageLoad]:
    """Find for every batch of a query run the stage that read most shuffled rows.

    Parameters
    ----------
    spark
        Session of the application, which must still be running.
    run_id
        ``StreamingQuery.runId`` of a query that has ended.

    Returns
    -------
    dict
        Load of that stage, by the number of the batch.
    """
    store = spark.sparkContext._jsc.sc().statusStore()
    loads: dict[int, StageLoad] = {}
    for job in _seq(store.jobsList(None)):
        group, description = job.jobGroup(), job.description()
        if group.isEmpty() or group.get() != run_id or description.isEmpty():
            continue
        batch = _BATCH.search(description.get())
        if batch is None:
            continue
        for stage in _seq(job.stageIds()):
            load = StageLoad(tuple(_rows_read(task) for task in _seq(store.taskList(stage, 0, _ALL_TASKS))))
            best = loads.get(int(batch[1]))
            if best is None or sum(load.rows) > sum(best.rows):
                loads[int(batch[1])] = load
    return loads


def _rows_read(task: Any) -> int:
    metrics = task.taskMetrics()
    return 0 if metrics.isEmpty() else int(metrics.get().shuffleReadMetrics().recordsRead())


def _seq(sequence: Any) -> list[Any]:
    """Copy a Scala sequence to a list."""
    return [sequence.apply(i) for i in range(sequence.size())]
