"""Learns costs of rows from the times of whole tasks, batch after batch, and decides whether to trust them.

What `attribution` finds in a few batches may be noise, and noise must not move shards. Therefore each new batch is
predicted with the costs learnt so far, and the prediction is compared with the measurement and with the simpler
assumption that all rows cost the same.
"""

from collections import deque
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from penstock.planning.attribution import Batch, cost_per_row
from penstock.planning.load import Loads, loads

BATCHES = 16
"""Number of batches that are remembered."""
FEWEST = 4
"""Number of predictions that are needed before costs are trusted."""
BETTER = 0.7
"""Costs are trusted while their prediction error is below this fraction of the error of equal costs."""
_FORGETTING = 0.2


class Attributed:
    """Learns what rows of each shard cost, batch after batch."""

    def __init__(self) -> None:
        self._batches: deque[Batch] = deque(maxlen=BATCHES)
        self._cost: Loads | None = None
        self._error = self._plain_error = 0.0
        self._forecasts = 0

    def _forget(self) -> None:
        self._batches.clear()
        self._cost = None
        self._forecasts = 0

    def rearranged(self, source: NDArray[np.int64]) -> "Attributed":
        """Return a copy for a different set of shards.

        The estimated work of rows of shards that no longer exist is subtracted from the work of their tasks.

        Parameters
        ----------
        source
            Previous number of each shard, -1 for a new shard, which has no rows yet; shape ``(shards,)``.
        """
        other = Attributed()
        other._error, other._plain_error, other._forecasts = self._error, self._plain_error, self._forecasts
        new = source < 0
        for batch in self._batches:
            work = batch.work
            if self._cost is not None:
                removed = batch.rows * self._cost
                removed[source[~new]] = 0.0
                work = np.maximum(work - loads(batch.task, removed, len(work)), 0.0)
            task, rows = batch.task[source], batch.rows[source]
            task[new], rows[new] = 0, 0.0
            other._batches.append(replace(batch, task=task, rows=rows, work=work))
        return other

    def observe(self, batch: Batch) -> Loads | None:
        """Learn from a batch.

        Parameters
        ----------
        batch
            Measured batch. If its number of shards differs from before, learning starts again. A batch without rows or
            without work is ignored.

        Returns
        -------
        NDArray or None
            Cost of a row of each shard, in the unit of the batch's work; shape ``(shards,)``. None while the costs do
            not predict the times of tasks clearly better than row counts do.
        """
        if self._batches and len(self._batches[-1].rows) != len(batch.rows):
            self._forget()
        if batch.rows.any() and batch.work.any():
            if self._cost is not None:
                self._score(batch, self._cost)
            self._batches.append(batch)
            self._cost = cost_per_row(self._batches)
        trusted = self._forecasts >= FEWEST and self._error < BETTER * self._plain_error
        return self._cost if trusted else None

    def _score(self, batch: Batch, cost: Loads) -> None:
        error = _distance(batch, batch.rows * cost)
        plain = _distance(batch, batch.rows)
        weight = 1.0 if self._forecasts == 0 else _FORGETTING
        self._error += weight * (error - self._error)
        self._plain_error += weight * (plain - self._plain_error)
        self._forecasts += 1


def _distance(batch: Batch, load: Loads) -> float:
    """Sum the differences between the tasks' shares of a load and their shares of the work."""
    task_load = loads(batch.task, load, len(batch.work))
    total = float(task_load.sum())
    return float(abs(task_load / total - batch.work / batch.work.sum()).sum()) if total > 0 else 1.0
