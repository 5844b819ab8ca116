"""Elasticutor's balancing of shards between the tasks of an executor (section 3.1)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.planning.compiled import compiled
from penstock.planning.load import Loads, Placement, imbalance, loads

NONE = -1


@dataclass(frozen=True)
class Refinement:
    """A placement that was refined.

    Parameters
    ----------
    task
        Of each shard, shape ``(shards,)``.
    moves
        Rows of shard, task before and task after, in the order in which they were chosen; shape ``(moves, 3)``. A shard
        may move more than once.
    delta_before, delta_after
        Largest load over the mean.
    """

    task: Placement
    moves: NDArray[np.int32]
    delta_before: float
    delta_after: float


def refine(task: Placement, load: Loads, tasks: int, theta: float = 1.2, moves: int | None = None) -> Refinement:
    """Move shards from the most to the least loaded task until the largest load is near enough to the mean.

    Each time the shard is moved that brings the larger of the two loads down most. Where several tasks are the most
    loaded the imbalance does not change with the first of them; the paper would stop there, here the next one follows.
    It ends because every move makes the sum of the squared loads smaller.

    Parameters
    ----------
    task
        Of each shard, from 0; shape ``(shards,)``.
    load
        Of each shard; shape ``(shards,)``, not negative.
    tasks
        Their number.
    theta
        Largest load over the mean that is left alone, at least 1.
    moves
        At most so many; ``None`` is no limit.

    Returns
    -------
    Refinement
        Never less balanced than what was there. Ties go to the lower task and the lower shard.
    """
    placed = np.array(task, dtype=np.int32)
    shard_load = np.ascontiguousarray(load, dtype=np.float64)
    task_load = loads(placed, shard_load, tasks)
    before = imbalance(task_load)
    limit = np.iinfo(np.int64).max if moves is None else moves
    made = _refine(placed, shard_load, task_load, theta, limit)
    # Sums of differences drift; what is told is summed up anew.
    return Refinement(placed, made, before, imbalance(loads(placed, shard_load, tasks)))


@compiled
def _refine(task: Placement, load: Loads, task_load: Loads, theta: float, limit: int) -> NDArray[np.int32]:
    tasks = len(task_load)
    first, following = _chains(task, tasks)
    mean = load.sum() / tasks
    made = np.empty((64, 3), dtype=np.int32)
    count = 0
    while count < limit:
        most, least = task_load.argmax(), task_load.argmin()
        if task_load[most] <= theta * mean:
            break
        best, best_before, best_load = NONE, NONE, task_load[most]
        previous, shard = NONE, first[most]
        while shard != NONE:
            larger = max(task_load[most] - load[shard], task_load[least] + load[shard])
            if larger < best_load or (larger == best_load and best != NONE and shard < best):
                best, best_before, best_load = shard, previous, larger
            previous, shard = shard, following[shard]
        if best == NONE:
            break
        if best_before == NONE:
            first[most] = following[best]
        else:
            following[best_before] = following[best]
        following[best], first[least] = first[least], best
        task_load[most] -= load[best]
        task_load[least] += load[best]
        task[best] = least
        if count == len(made):
            longer = np.empty((2 * count, 3), dtype=np.int32)
            longer[:count] = made
            made = longer
        made[count, 0], made[count, 1], made[count, 2] = best, most, least
        count += 1
    return made[:count].copy()


@compiled
def _chains(task: Placement, tasks: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Chain the shards of each task: the first of each task, and the one that follows each shard."""
    first = np.full(tasks, NONE, dtype=np.int32)
    following = np.full(len(task), NONE, dtype=np.int32)
    for shard in range(len(task) - 1, -1, -1):
        following[shard] = first[task[shard]]
        first[task[shard]] = shard
    return first, following
