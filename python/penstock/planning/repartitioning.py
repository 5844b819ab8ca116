"""The resource-centric approach that Elasticutor is compared with (section 5): it reassigns all shards."""

from penstock.planning.load import Loads, Placement, imbalance, loads
from penstock.planning.longest_first import longest_first


def repartition(task: Placement, load: Loads, tasks: int, theta: float) -> Placement:
    """Reassign all shards of an operator, heaviest first, if their imbalance is above theta.

    The paper says that shards of an operator go to any of its single-core executors, but not to which. This function
    ignores the previous placement and where state is, which makes it the opposite extreme of `refine`.

    Parameters
    ----------
    task
        Task of each shard; shape ``(shards,)``.
    load
        Load of each shard, not negative, in any unit; shape ``(shards,)``.
    tasks
        Number of tasks.
    theta
        Largest imbalance that is accepted.

    Returns
    -------
    Placement
        Task of each shard; shape ``(shards,)``. Equal to `task` if its imbalance is accepted or the new placement is
        not better.
    """
    before = imbalance(loads(task, load, tasks))
    if before <= theta:
        return task
    placed = longest_first(load, tasks)
    return placed if imbalance(loads(placed, load, tasks)) < before else task
