"""Partial key grouping (PKG; Nasir et al., ICDE 2015), a baseline of Fang et al.: rows go to the lighter of two tasks.

The state of a key is then on two tasks, and a downstream operator must merge it. Penstock does not do this. The loads
show how much balance it would gain.
"""

import numpy as np

from penstock.planning.compiled import compiled
from penstock.planning.load import Loads, Placement


def partial_key_grouping(first: Placement, second: Placement, cost: Loads, instances: int) -> Loads:
    """Send every row to the less loaded of its key's two instances, or to the first if their loads are equal.

    Parameters
    ----------
    first, second
        The two instances of each row's key, by two hashes; shape ``(rows,)``.
    cost
        Cost of each row; shape ``(rows,)``.
    instances
        Number of instances.

    Returns
    -------
    NDArray
        Load of each instance as seen by one sender, without the cost of merging; shape ``(instances,)``.
    """
    return _send(first, second, cost, np.zeros(instances))


@compiled
def _send(first: Placement, second: Placement, cost: Loads, load: Loads) -> Loads:
    for row in range(len(cost)):
        instance = first[row] if load[first[row]] <= load[second[row]] else second[row]
        load[instance] += cost[row]
    return load
