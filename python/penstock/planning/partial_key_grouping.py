"""Partial key grouping (PKG; Nasir et al., ICDE 2015), a baseline of Fang et al.: rows go to the lighter of two places.

A key's state is in two places then, and an operator behind must merge it. Penstock does not do this; the loads show
what it would be worth.
"""

import numpy as np

from penstock.planning.compiled import compiled
from penstock.planning.load import Loads, Placement


def partial_key_grouping(first: Placement, second: Placement, cost: Loads, instances: int) -> Loads:
    """Send every row to the one of its key's two instances that has had less, the first where they are equal.

    Parameters
    ----------
    first, second
        The two instances of each row's key, by two hashes; shape ``(rows,)``.
    cost
        Of each row.
    instances
        Their number.

    Returns
    -------
    NDArray
        Load of each instance, as one sender sees it; shape ``(instances,)``. Merging is not in it.
    """
    return _send(first, second, cost, np.zeros(instances))


@compiled
def _send(first: Placement, second: Placement, cost: Loads, load: Loads) -> Loads:
    for row in range(len(cost)):
        instance = first[row] if load[first[row]] <= load[second[row]] else second[row]
        load[instance] += cost[row]
    return load
