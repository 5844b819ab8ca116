"""Decides how many tasks a region should have: weighs the overhead of tasks against the work of the busiest one.

A batch takes longer with more tasks to start, and with more work in its busiest task. Both are learnt from the query's
own batches: ``time(N) = fixed + per_task * N + max load(N)``. Neither the papers nor Spark choose this number.
Elasticutor's allocation of cores (section 4.1) is the nearest, with queues in place of batches.
"""

from dataclasses import dataclass

import numpy as np

from penstock.planning.load import Loads

PRIOR_PER_TASK_MS = 2.0
# Weight of the prior, as a sum of squared deviations of the number of tasks.
_PRIOR_SPREAD = 4.0


@dataclass(frozen=True)
class TaskOverhead:
    """Time that a batch takes in addition to the work of its busiest task: a line, by least squares with forgetting.

    Parameters
    ----------
    per_task_ms
        Time that each task adds.
    fixed_ms
        Time that does not depend on the number of tasks.
    weight, tasks, overhead, squares, products
        Weighted sums over the batches so far: of 1, tasks, overhead, tasks squared, and tasks times overhead.
    """

    per_task_ms: float = PRIOR_PER_TASK_MS
    fixed_ms: float = 0.0
    weight: float = 0.0
    tasks: float = 0.0
    overhead: float = 0.0
    squares: float = 0.0
    products: float = 0.0

    def ms(self, tasks: int) -> float:
        """Predict the time that a number of tasks adds to the work of the busiest one."""
        return self.fixed_ms + self.per_task_ms * tasks


def learn(
    known: TaskOverhead, tasks: int, batch_ms: float, busiest_ms: float, forgetting: float = 0.05
) -> TaskOverhead:
    """Learn from a batch.

    While the number of tasks has not changed, nothing is known about the time that a task adds, and the prior is used.

    Parameters
    ----------
    known
        What was learnt before.
    tasks
        Number of tasks of the batch.
    batch_ms
        Time of the stage, or of the batch.
    busiest_ms
        Working time of the busiest task.
    forgetting
        Fraction by which the weight of a batch decreases with each later batch, from 0 to 1.
    """
    rest = max(0.0, batch_ms - busiest_ms)
    keep = 1.0 - forgetting
    weight, total, overhead = known.weight * keep + 1, known.tasks * keep + tasks, known.overhead * keep + rest
    squares, products = known.squares * keep + tasks * tasks, known.products * keep + tasks * rest
    spread = squares - total * total / weight
    covariance = products - total * overhead / weight
    per_task = max(0.0, (covariance + _PRIOR_SPREAD * PRIOR_PER_TASK_MS) / (spread + _PRIOR_SPREAD))
    fixed = max(0.0, (overhead - per_task * total) / weight)
    return TaskOverhead(per_task, fixed, weight, total, overhead, squares, products)


def busiest(load: Loads, tasks: int) -> float:
    """Return the least possible load of the busiest task: the mean, or the load of the heaviest shard."""
    return max(float(load.sum()) / tasks, float(load.max(initial=0.0)))


def best_count(overhead: TaskOverhead, load: Loads, most: int) -> int:
    """Return the number of tasks with the shortest predicted batch; ties go to the smaller number.

    Parameters
    ----------
    overhead
        Overhead of tasks, as learnt.
    load
        Expected work of each shard, in ms; shape ``(shards,)``.
    most
        Largest number of tasks, which is the number that can run at once.
    """
    times = [overhead.ms(n) + busiest(load, n) for n in range(1, max(1, most) + 1)]
    return int(np.argmin(times)) + 1


@dataclass(frozen=True)
class TaskCount:
    """A number of tasks that changes only on lasting gains.

    Parameters
    ----------
    tasks
        Number of tasks that is used.
    wanted
        Best numbers of tasks of the last batches, oldest first.
    reason
        Why this number is used.
    """

    tasks: int
    wanted: tuple[int, ...] = ()
    reason: str = "first batch"


def follow(
    count: TaskCount, overhead: TaskOverhead, load: Loads, most: int, *, margin: float = 0.05, window: int = 5
) -> TaskCount:
    """Decide the number of tasks of the next batch.

    It increases at once if that shortens the batch by more than a margin. It decreases only if fewer tasks were enough
    in each batch of a window, and then to the largest number that one of these batches needed, so that the tasks are
    still there if the load returns.

    Parameters
    ----------
    count
        The previous decision.
    overhead, load, most
        See `best_count`.
    margin
        Fraction of the predicted time that a change must save.
    window
        Number of batches that must need fewer tasks before there are fewer.
    """
    best = best_count(overhead, load, most)
    wanted = (*count.wanted, best)[-window:]
    now = min(count.tasks, most)

    def ms(tasks: int) -> float:
        return overhead.ms(tasks) + busiest(load, tasks)

    if now != count.tasks:
        return TaskCount(now, wanted, f"{most} tasks can run at once")
    if best == now:
        return TaskCount(now, wanted, "best")
    if best < now and (len(wanted) < window or max(wanted) >= now):
        return TaskCount(now, wanted, "within stabilisation window")
    target = best if best > now else max(wanted)
    if ms(target) >= (1.0 - margin) * ms(now):
        return TaskCount(now, wanted, "within hysteresis")
    return TaskCount(target, wanted, f"{ms(now):.0f} ms predicted with {now} tasks, {ms(target):.0f} ms with {target}")
