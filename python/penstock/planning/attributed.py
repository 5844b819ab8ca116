"""Costs of rows out of the times of whole tasks, batch after batch, as far as they can be trusted.

What `attribution` finds in a few batches may be noise, and noise must move nothing. So what the batches before would
have said of each new one is held against what came, and against the plainer belief that all rows cost the same.
"""

from collections import deque
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from penstock.planning.attribution import Batch, cost_per_row
from penstock.planning.load import Loads, loads

BATCHES = 16
"""That are remembered."""
FEWEST = 4
"""Forecasts that must have been made before one is trusted."""
BETTER = 0.7
"""What the error of the forecasts may be at most, over that of equal costs."""
_FORGETTING = 0.2


class Attributed:
    """Learns what rows of each shard cost from one batch after the other."""

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
        """Give the same for other shards.

        Parameters
        ----------
        source
            Of each of them, which it was; -1 for one that was not there, and had no rows. Shape ``(shards,)``. What the
            rows of shards that are no more took by what is known is taken off the work of their tasks.
        """
        other = Attributed()
        other._error, other._plain_error, other._forecasts = self._error, self._plain_error, self._forecasts
        new = source < 0
        for batch in self._batches:
            work = batch.work
            if self._cost is not None:
                gone = batch.rows * self._cost
                gone[source[~new]] = 0.0
                work = np.maximum(work - loads(batch.task, gone, len(work)), 0.0)
            task, rows = batch.task[source], batch.rows[source]
            task[new], rows[new] = 0, 0.0
            other._batches.append(replace(batch, task=task, rows=rows, work=work))
        return other

    def observe(self, batch: Batch) -> Loads | None:
        """Learn from a batch.

        Parameters
        ----------
        batch
            Of as many shards as those before, or all is learnt anew. One without rows or work says nothing.

        Returns
        -------
        NDArray or None
            Cost of a row of each shard in the unit of the batch's work, shape ``(shards,)``; None as long as it
            foretells tasks' times hardly better than rows alone.
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
    """Sum how far tasks' shares of a load are from their shares of the work."""
    of_tasks = loads(batch.task, load, len(batch.work))
    total = float(of_tasks.sum())
    return float(abs(of_tasks / total - batch.work / batch.work.sum()).sum()) if total > 0 else 1.0
