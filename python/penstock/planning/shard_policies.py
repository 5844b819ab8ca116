"""The papers' policies applied to shards: they place shards on the tasks of the next batch by the last batch.

They do not know the rows of the next batch. Penstock's own policy, `hybrid`, knows them all, because the binder applies
it at the barrier, on the JVM. The policies here serve for comparison.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from penstock.planning.key_routing import KeyPlan, KeyStatistics
from penstock.planning.load import Loads, Placement
from penstock.planning.mixed import min_migration, min_table, mixed
from penstock.planning.refinement import refine
from penstock.planning.repartitioning import repartition

TABLE = 3000
"""Largest number of entries of Mixed's routing table (A_max), as in section 5 of Fang et al."""


@dataclass(frozen=True)
class ShardStatistics:
    """Statistics of the last batch by shard; all arrays have the shape ``(shards,)``.

    Parameters
    ----------
    task
        Task that ran each shard, from 0. There may have been more tasks than the next batch has.
    load
        Load of each shard's rows, not negative, in any unit.
    state_bytes
        Size of each shard's state.
    """

    task: Placement
    load: Loads
    state_bytes: Loads


def place(policy: str, last: ShardStatistics, tasks: int, theta: float) -> Placement:
    """Place shards on the tasks of the next batch.

    Parameters
    ----------
    policy
        One of `POLICIES`. ``refine`` is Elasticutor's (section 3.1), ``resourceCentric`` is what Elasticutor is
        compared with, and the others are those of Fang et al. (section 3).
    last
        Statistics of the last batch.
    tasks
        Number of tasks of the next batch.
    theta
        Largest imbalance that is accepted, above 1.

    Returns
    -------
    Placement
        Task of each shard; shape ``(shards,)``. Shards whose task no longer exists start at their default task.

    Raises
    ------
    KeyError
        The policy does not exist.
    """
    default = default_tasks(len(last.task), tasks)
    current = np.where(last.task < tasks, last.task, default).astype(np.int32)
    return POLICIES[policy](last, default, current, tasks, theta)


def default_tasks(shards: int, tasks: int) -> Placement:
    """Place shards by their number alone, in runs of neighbours, as `static` does."""
    return (np.arange(shards, dtype=np.int64) * tasks // shards).astype(np.int32)


_Policy = Callable[[ShardStatistics, Placement, Placement, int, float], Placement]


def _refined(last: ShardStatistics, _: Placement, current: Placement, tasks: int, theta: float) -> Placement:
    return refine(current, last.load, tasks, theta).task


def _repartitioned(last: ShardStatistics, _: Placement, current: Placement, tasks: int, theta: float) -> Placement:
    return repartition(current, last.load, tasks, theta)


def _routed(plan: Callable[[KeyStatistics, float], KeyPlan]) -> _Policy:
    def placed(last: ShardStatistics, default: Placement, current: Placement, tasks: int, theta: float) -> Placement:
        memory = np.maximum(last.state_bytes, 1.0)
        return plan(KeyStatistics(last.load, memory, default, current, tasks), theta - 1.0).destination

    return placed


POLICIES: dict[str, _Policy] = {
    "refine": _refined,
    "resourceCentric": _repartitioned,
    "mixed": _routed(lambda keys, theta: mixed(keys, theta, TABLE)),
    "minTable": _routed(min_table),
    "minMig": _routed(min_migration),
}
"""Policies by the names that `spark.penstock.policy` has for them."""
