"""How many tasks a region should have: what a task costs, against what the busiest one does.

A batch takes the longer the more tasks it has to start, and the longer the more its busiest task has to do. Both are
learnt from the query's own batches: ``time(N) = fixed + per_task * N + max load(N)``. Neither the papers nor Spark
choose this number; Elasticutor's allocation of cores is the nearest (section 4.1), with queues in place of batches.
"""

from dataclasses import dataclass

import numpy as np

from penstock.planning.load import Loads

PRIOR_PER_TASK_MS = 2.0
# As many batches, with numbers of tasks that differ by this much, weigh as much as the prior.
_PRIOR_SPREAD = 4.0


@dataclass(frozen=True)
class TaskOverhead:
    """What a batch takes besides the work of its busiest task: a line, learnt by least squares that forget.

    Parameters
    ----------
    per_task_ms
        What each task adds.
    fixed_ms
        What there is without any.
    weight, tasks, overhead, squares, products
        Sums over the batches so far: of 1, tasks, overhead, tasks squared, tasks times overhead.
    """

    per_task_ms: float = PRIOR_PER_TASK_MS
    fixed_ms: float = 0.0
    weight: float = 0.0
    tasks: float = 0.0
    overhead: float = 0.0
    squares: float = 0.0
    products: float = 0.0

    def ms(self, tasks: int) -> float:
        """Predict what so many tasks add to the work of the busiest one."""
        return self.fixed_ms + self.per_task_ms * tasks


def learn(
    known: TaskOverhead, tasks: int, batch_ms: float, busiest_ms: float, forgetting: float = 0.05
) -> TaskOverhead:
    """Learn from a batch.

    As long as the number of tasks has not changed nothing is known of what one adds: then it is what was assumed.

    Parameters
    ----------
    tasks
        Of the batch.
    batch_ms
        Time of the stage, or of the batch.
    busiest_ms
        Time in which the busiest task worked.
    forgetting
        How much less a batch counts with each that follows, from 0 to 1.
    """
    rest = max(0.0, batch_ms - busiest_ms)
    keep = 1.0 - forgetting
    weight, total, overhead = known.weight * keep + 1, known.tasks * keep + tasks, known.overhead * keep + rest
    squares, products = known.squares * keep + tasks * tasks, known.products * keep + tasks * rest
    spread = squares - total * total / weight
    together = products - total * overhead / weight
    per_task = max(0.0, (together + _PRIOR_SPREAD * PRIOR_PER_TASK_MS) / (spread + _PRIOR_SPREAD))
    fixed = max(0.0, (overhead - per_task * total) / weight)
    return TaskOverhead(per_task, fixed, weight, total, overhead, squares, products)


def busiest(load: Loads, tasks: int) -> float:
    """Give the least load that the busiest of so many tasks can have: the mean, or that of the heaviest shard."""
    return max(float(load.sum()) / tasks, float(load.max(initial=0.0)))


def best_count(overhead: TaskOverhead, load: Loads, most: int) -> int:
    """Give the number of tasks with the shortest predicted batch, the smaller one of two that are equally good.

    Parameters
    ----------
    overhead
        As learnt.
    load
        Expected work of each shard, in ms; shape ``(shards,)``.
    most
        Largest number that can run at once: cores.
    """
    times = [overhead.ms(n) + busiest(load, n) for n in range(1, max(1, most) + 1)]
    return int(np.argmin(times)) + 1


@dataclass(frozen=True)
class TaskCount:
    """A number of tasks that does not flutter.

    Parameters
    ----------
    tasks
        What is used.
    wanted
        The best numbers of the last batches, oldest first.
    reason
        Why it is what it is.
    """

    tasks: int
    wanted: tuple[int, ...] = ()
    reason: str = "first batch"


def follow(
    count: TaskCount, overhead: TaskOverhead, load: Loads, most: int, *, margin: float = 0.05, window: int = 5
) -> TaskCount:
    """Decide on the number of tasks of the next batch.

    More tasks at once, if the batch gets shorter by more than a margin. Fewer only after a window of batches in each of
    which fewer would have done, and then as many as the one that wanted most: a load that comes back finds its tasks.

    Parameters
    ----------
    count
        What was decided before.
    overhead, load, most
        See `best_count`.
    margin
        Share of the predicted time that a change must gain.
    window
        Batches.
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
