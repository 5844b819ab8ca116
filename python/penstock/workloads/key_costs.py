"""Keys of skewed cost that fluctuates, as Fang et al. generate them (section 5): Zipf, and swaps between instances."""

from dataclasses import dataclass

import numpy as np

from penstock.planning.key_routing import KeyStatistics
from penstock.planning.load import Loads, Placement, loads

_ROUNDS = 20


@dataclass(frozen=True)
class KeyCosts:
    """Keys and where a hash puts them.

    Parameters
    ----------
    cost
        Of each key in an interval, its mean is 1; shape ``(keys,)``.
    default
        Instance of each key.
    instances
        Their number.
    """

    cost: Loads
    default: Placement
    instances: int

    def statistics(self, current: Placement | None = None) -> KeyStatistics:
        """Make the statistics of an interval in which a key's state is as large as its cost."""
        place = self.default if current is None else current
        return KeyStatistics(self.cost, np.maximum(self.cost, 1e-6), self.default, place, self.instances)


def zipf(keys: int, skew: float, instances: int, seed: int) -> KeyCosts:
    """Draw keys whose costs follow Zipf's law, each at an instance by chance.

    Parameters
    ----------
    keys, instances
        Their numbers.
    skew
        Exponent z: the i-th key costs as much as ``i ** -z``.
    seed
        Of the generator.
    """
    random = np.random.default_rng(seed)
    cost = np.arange(1, keys + 1, dtype=np.float64) ** -skew
    cost *= keys / cost.sum()
    return KeyCosts(random.permutation(cost), random.integers(0, instances, keys).astype(np.int32), instances)


def fluctuate(costs: KeyCosts, current: Placement, change: float, seed: int) -> KeyCosts:
    """Swap costs of keys of different instances until the load of one has grown by so much.

    Of a pair that is drawn, the key at the growing instance gets the larger cost. Loads that a random swap moves up and
    down never come far from where they were: with a million keys the paper's default of 1 would not be reached.

    Parameters
    ----------
    costs
        Of the interval before.
    current
        Where keys are.
    change
        f: how much the load grows, over the mean load. Where it cannot, the result is as near as swaps come.
    seed
        Of the generator.
    """
    random = np.random.default_rng(seed)
    cost = costs.cost.copy()
    grows = int(random.integers(costs.instances))
    mean = cost.sum() / costs.instances
    inside, outside = np.flatnonzero(current == grows), np.flatnonzero(current != grows)
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
    """Give the largest change of an instance's load, over the mean load (f of the paper)."""
    change = loads(current, after.cost, after.instances) - loads(current, before.cost, before.instances)
    return float(np.abs(change).max() / (before.cost.sum() / before.instances))
