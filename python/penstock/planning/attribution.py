"""Estimates what rows of each shard cost, from the times of tasks that ran several shards each.

If an operator blocks or works on other threads, a task's time cannot be charged to the row that is being processed.
Then only sums are known: the time of each task, and the rows of each of its shards. If the same shards run together in
every batch, these sums say nothing about a single shard. But bindings differ between batches, and non-negative least
squares over several batches can separate the shards. Elasticutor and Fang et al. measure each shard or key, and do not
need this.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.planning.compiled import compiled
from penstock.planning.load import Loads, Placement

_ITERATIONS = 1000
_TOLERANCE = 1e-7
_PATIENCE = 3


@dataclass(frozen=True)
class Batch:
    """A batch whose tasks were measured.

    Parameters
    ----------
    task
        Task of each shard; shape ``(shards,)``.
    rows
        Number of rows of each shard; shape ``(shards,)``.
    work
        Time of each task minus the fixed overhead of a task, not negative, in any unit; shape ``(tasks,)``.
    """

    task: Placement
    rows: Loads
    work: Loads


def cost_per_row(batches: Sequence[Batch], *, prior: float = 0.1, forgetting: float = 0.05) -> Loads:
    """Estimate what a row of each shard costs.

    Minimises the squared differences between the work of each task and the estimated cost of its rows, plus a penalty
    for deviation from one common cost. The penalty decides where the batches do not, and then shares a task's time by
    rows. No cost is negative.

    Solved by block principal pivoting (Kim and Park 2011) over conjugate gradients. They need no matrix of shards by
    shards: an iteration takes time proportional to shards times batches.

    Parameters
    ----------
    batches
        The last batches, oldest first, all with the same number of shards.
    prior
        Strength of the penalty. At 1 it weighs as much as a batch in which each shard had a task to itself.
    forgetting
        Fraction by which the weight of a batch decreases with each later batch, from 0 to 1.

    Returns
    -------
    NDArray
        Cost of a row in the unit of `Batch.work`; shape ``(shards,)``. A shard without rows in any batch has the common
        cost.
    """
    if not batches:
        return np.empty(0)
    weight = (1.0 - forgetting) ** np.arange(len(batches) - 1, -1, -1, dtype=np.float64)
    rows = np.stack([batch.rows for batch in batches]).astype(np.float64)
    offset = np.cumsum([0, *(len(batch.work) for batch in batches)])
    # Tasks are numbered consecutively over all batches.
    task = np.stack([batch.task.astype(np.int64) + at for batch, at in zip(batches, offset[:-1], strict=True)])
    work = np.concatenate([batch.work for batch in batches]).astype(np.float64)
    # Work of a task without rows does not belong to any shard.
    work[np.bincount(task.ravel(), rows.ravel(), len(work)) == 0] = 0.0
    total = float((weight @ rows).sum())
    if total == 0:
        return np.zeros(rows.shape[1])
    common = float(np.repeat(weight, np.diff(offset)) @ work) / total
    pull = prior * (weight[:, None] * rows * rows).sum(axis=0) / weight.sum()
    return _solve(task, rows, work, weight, pull, common)


def _solve(task: NDArray[np.int64], rows: Loads, work: Loads, weight: Loads, pull: Loads, common: float) -> Loads:
    """Find which costs are positive, and return the costs."""
    known = pull > 0
    target = _transposed(task, rows, work, weight) + pull * common
    curvature = np.where(known, pull + (weight[:, None] * rows * rows).sum(axis=0), 1.0)
    positive, cost = known.copy(), np.where(known, common, 0.0)
    fewest, patience = len(cost) + 1, _PATIENCE
    while True:
        cost = _descend(task, rows, weight, pull, target, curvature, np.where(positive, cost, 0.0), positive)
        slope = _slope(task, rows, weight, pull, cost) - target
        rounding = 1e-9 * np.abs(target)
        wrong = known & np.where(positive, cost < 0, slope < -rounding)
        count = int(wrong.sum())
        if count == 0:
            return np.where(known, np.maximum(cost, 0.0), common)
        if count < fewest:
            fewest, patience = count, _PATIENCE
            positive ^= wrong
        elif patience > 0:
            patience -= 1
            positive ^= wrong
        else:
            # Exchanging all at once may cycle. Exchanging only the last one does not.
            last = int(np.flatnonzero(wrong)[-1])
            positive[last] = not positive[last]


@compiled
def _transposed(task: NDArray[np.int64], rows: Loads, work: Loads, weight: Loads) -> Loads:
    batches, shards = rows.shape
    result = np.zeros(shards)
    for batch in range(batches):
        for shard in range(shards):
            result[shard] += weight[batch] * rows[batch, shard] * work[task[batch, shard]]
    return result


@compiled
def _slope(task: NDArray[np.int64], rows: Loads, weight: Loads, pull: Loads, cost: Loads) -> Loads:
    """Return half the gradient of the minimised function, without its constant part."""
    batches, shards = rows.shape
    work = np.zeros(task.max() + 1)
    for batch in range(batches):
        for shard in range(shards):
            work[task[batch, shard]] += rows[batch, shard] * cost[shard]
    return _transposed(task, rows, work, weight) + pull * cost


@compiled
def _descend(
    task: NDArray[np.int64],
    rows: Loads,
    weight: Loads,
    pull: Loads,
    target: Loads,
    curvature: Loads,
    start: Loads,
    positive: NDArray[np.bool_],
) -> Loads:
    """Minimise over the costs in `positive`, which may become negative; the others stay 0."""
    cost = start.copy()
    left = np.where(positive, target - _slope(task, rows, weight, pull, cost), 0.0)
    scaled = left / curvature
    direction, size = scaled.copy(), (left * scaled).sum()
    enough = _TOLERANCE**2 * (target * target / curvature).sum()
    for _ in range(_ITERATIONS):
        if size <= enough:
            break
        change = np.where(positive, _slope(task, rows, weight, pull, direction), 0.0)
        step = size / (direction * change).sum()
        cost += step * direction
        left -= step * change
        scaled = left / curvature
        before, size = size, (left * scaled).sum()
        direction = scaled + (size / before) * direction
    return cost
