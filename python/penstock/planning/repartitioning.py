"""The resource-centric approach, which Elasticutor is compared with (section 5): all shards are dealt out."""

from penstock.planning.load import Loads, Placement, imbalance, loads
from penstock.planning.longest_first import longest_first


def repartition(task: Placement, load: Loads, tasks: int, theta: float) -> Placement:
    """Deal out all shards of an operator anew where they are out of balance, the heaviest first.

    The paper says that shards of an operator go to any of its single-core executors, and not which: here nothing is
    kept of the placement before, wherever state is, which is the other extreme from `refine`.

    Parameters
    ----------
    task
        Of each shard, shape ``(shards,)``.
    load
        Of each shard, not negative, in any unit; shape ``(shards,)``.
    tasks
        Their number.
    theta
        Largest load over the mean that is accepted.

    Returns
    -------
    Placement
        Task of each shard, shape ``(shards,)``; as it was where it is accepted, or anew is no better.
    """
    before = imbalance(loads(task, load, tasks))
    if before <= theta:
        return task
    anew = longest_first(load, tasks)
    return anew if imbalance(loads(anew, load, tasks)) < before else task
