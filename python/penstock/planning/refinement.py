"""Elasticutor's balancing of shards between the tasks of an executor (section 3.1)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.planning.compiled import compiled
from penstock.planning.load import Loads, Placement, imbalance, loads

NONE = -1


@dataclass(frozen=True)
class Refinement:
    """A refined placement.

    Parameters
    ----------
    task
        Task of each shard; shape ``(shards,)``.
    moves
        One row for each move, in the order in which they were chosen: shard, task before, task after; shape ``(moves,
        3)``. A shard may move more than once.
    delta_before, delta_after
        Imbalance before and after the moves.
    """

    task: Placement
    moves: NDArray[np.int32]
    delta_before: float
    delta_after: float


def refine(task: Placement, load: Loads, tasks: int, theta: float = 1.2, moves: int | None = None) -> Refinement:
    """Move shards from the most to the least loaded task until the imbalance is at most theta.

    Each step moves the shard that most lowers the larger of the two loads. If several tasks have the largest load, the
    first move does not reduce the imbalance, and the paper would stop there. This function continues with the next of
    these tasks. It terminates because every move reduces the sum of the squared loads.

    Parameters
    ----------
    task
        Task of each shard, from 0; shape ``(shards,)``.
    load
        Load of each shard, not negative; shape ``(shards,)``.
    tasks
        Number of tasks.
    theta
        Largest imbalance that is accepted, at least 1.
    moves
        Largest number of moves, None for no limit.

    Returns
    -------
    Refinement
        A placement with at most the imbalance before. Ties go to the lower task and the lower shard.
    """
    placed = np.array(task, dtype=np.int32)
    shard_load = np.ascontiguousarray(load, dtype=np.float64)
    task_load = loads(placed, shard_load, tasks)
    before = imbalance(task_load)
    limit = np.iinfo(np.int64).max if moves is None else moves
    made = _refine(placed, shard_load, task_load, theta, limit)
    # Loads updated by differences drift, so the reported imbalance is computed from scratch.
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
    """Link the shards of each task: return the first shard of each task, and the successor of each shard."""
    first = np.full(tasks, NONE, dtype=np.int32)
    following = np.full(len(task), NONE, dtype=np.int32)
    for shard in range(len(task) - 1, -1, -1):
        following[shard] = first[task[shard]]
        first[task[shard]] = shard
    return first, following
