"""Generate keys with skewed and fluctuating costs as Fang et al. do (section 5): Zipf's law, and swaps of costs."""

from dataclasses import dataclass

import numpy as np

from penstock.planning.key_routing import KeyStatistics
from penstock.planning.load import Loads, Placement, loads

_ROUNDS = 20


@dataclass(frozen=True)
class KeyCosts:
    """Keys, their costs and the instances that the hash selects.

    Parameters
    ----------
    cost
        Cost of each key in an interval, with mean 1; shape ``(keys,)``.
    default
        Instance that the hash of each key selects.
    instances
        Number of instances.
    """

    cost: Loads
    default: Placement
    instances: int

    def statistics(self, current: Placement | None = None) -> KeyStatistics:
        """Return the statistics of an interval in which the state of each key is as large as its cost."""
        place = self.default if current is None else current
        return KeyStatistics(self.cost, np.maximum(self.cost, 1e-6), self.default, place, self.instances)


def zipf(keys: int, skew: float, instances: int, seed: int) -> KeyCosts:
    """Draw keys whose costs follow Zipf's law, each at a random instance.

    Parameters
    ----------
    keys, instances
        Number of keys and of instances.
    skew
        Exponent z of Zipf's law: the cost of the i-th key is proportional to ``i ** -z``.
    seed
        Seed of the random generator.
    """
    random = np.random.default_rng(seed)
    cost = np.arange(1, keys + 1, dtype=np.float64) ** -skew
    cost *= keys / cost.sum()
    return KeyCosts(random.permutation(cost), random.integers(0, instances, keys).astype(np.int32), instances)


def fluctuate(costs: KeyCosts, current: Placement, change: float, seed: int) -> KeyCosts:
    """Swap costs between keys of a random instance and keys of others, until the instance's load has grown enough.

    In each drawn pair, the key at the growing instance gets the larger cost. Swaps in random directions would nearly
    cancel each other: with a million keys, the load would never grow by the paper's default of 1.

    Parameters
    ----------
    costs
        Costs in the interval before.
    current
        Instance of each key.
    change
        Growth of the load over the mean load, f in the paper. If swaps cannot reach it, the result is as close as
        possible.
    seed
        Seed of the random generator.
    """
    random = np.random.default_rng(seed)
    cost = costs.cost.copy()
    growing = int(random.integers(costs.instances))
    mean = cost.sum() / costs.instances
    inside, outside = np.flatnonzero(current == growing), np.flatnonzero(current != growing)
    pairs, missing = min(len(inside), len(outside)), change * mean
    for _ in range(_ROUNDS):
        one, two = random.permutation(inside)[:pairs], random.permutation(outside)[:pairs]
        gain = np.maximum(cost[two] - cost[one], 0.0)
        swaps = np.flatnonzero(gain)
        swaps = swaps[: int(np.searchsorted(np.cumsum(gain[swaps]), missing)) + 1]
        cost[one[swaps]], cost[two[swaps]] = cost[two[swaps]], cost[one[swaps]]
        missing -= float(gain[swaps].sum())
        if missing <= 0:
            break
    return KeyCosts(cost, costs.default, costs.instances)


def grown(before: KeyCosts, after: KeyCosts, current: Placement) -> float:
    """Return the largest change of an instance's load over the mean load (f in the paper)."""
    change = loads(current, after.cost, after.instances) - loads(current, before.cost, before.instances)
    return float(np.abs(change).max() / (before.cost.sum() / before.instances))
