"""Decides which keys get a shard of their own: the routing table of Fang et al., for keys too heavy for their shard."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.planning.compiled import compiled
from penstock.planning.load import Loads, Placement


@dataclass(frozen=True)
class Pins:
    """The heavy keys that get a shard of their own.

    Parameters
    ----------
    pinned
        Whether each heavy key is pinned; shape ``(keys,)``.
    left_out
        Number of further keys that would be pinned if more were allowed.
    limiting
        Most expensive key whose cost alone exceeds the load that a task should have, None if there is none. With such a
        key, balance cannot be reached.
    too_expensive
        Whether a key stays in a shard that is too heavy because the gain is less than the price.
    """

    pinned: NDArray[np.bool_]
    left_out: int
    limiting: int | None
    too_expensive: bool


def pin(
    shard_load: Loads,
    key_shard: Placement,
    key_cost: Loads,
    pinned: NDArray[np.bool_],
    tasks: int,
    *,
    theta: float = 1.1,
    most: int = 64,
    keep: float = 0.5,
    price: Loads | None = None,
) -> Pins:
    """Take keys out of shards that are too heavy for a task: as few as needed, the most expensive first.

    A key is pinned only if both parts become lighter by more than the tolerance and the price. It returns to its base
    shard only if the base shard stays well below the limit with it, so that a load near the limit does not move it back
    and forth.

    Parameters
    ----------
    shard_load
        Expected load of each base shard, with all keys that hash to it; shape ``(shards,)``.
    key_shard, key_cost
        Base shard and expected cost of each heavy key; shape ``(keys,)``.
    pinned
        Whether each heavy key is pinned now; shape ``(keys,)``.
    tasks
        Number of tasks.
    theta
        Largest imbalance of tasks that is accepted, above 1.
    most
        Largest number of keys that may be pinned (A_max). If there are more, the cheapest return to their base shards.
    keep
        Fraction of the limit. A pinned key returns if the load of its base shard with the key is at most this.
    price
        Time that a batch must gain by taking a key out of a shard; shape ``(shards,)``, None if there is no price.
    """
    mean = float(shard_load.sum()) / tasks
    limit, tolerance = theta * mean, (theta - 1.0) * mean
    least = np.full(len(shard_load), tolerance) if price is None else np.maximum(price, tolerance)
    rest = shard_load.astype(np.float64)
    np.subtract.at(rest, key_shard[pinned], key_cost[pinned])
    cost = key_cost.astype(np.float64)
    by_cost = np.argsort(-cost, kind="stable")
    base_shard = key_shard.astype(np.int64)

    def choose(most: int) -> tuple[NDArray[np.bool_], bool]:
        chosen = pinned.copy()
        return chosen, _choose(chosen, rest.copy(), base_shard, cost, by_cost, limit, keep, tolerance, least, most)

    chosen, too_expensive = choose(len(cost))
    left_out = max(0, int(chosen.sum()) - most)
    if left_out:
        chosen, too_expensive = choose(most)
    limiting = int(by_cost[0]) if len(by_cost) and key_cost[by_cost[0]] > limit else None
    return Pins(chosen, left_out, limiting, too_expensive)


@compiled
def _choose(
    chosen: NDArray[np.bool_],
    rest: Loads,
    base_shard: NDArray[np.int64],
    cost: Loads,
    by_cost: NDArray[np.int64],
    limit: float,
    keep: float,
    tolerance: float,
    least: Loads,
    most: int,
) -> bool:
    """Unpin keys that are not needed, then pin others; `chosen` and `rest` become the result.

    Where `most` keys are pinned, a key takes the slot of a cheaper one if that one does not make its base shard heavier
    than the shard that is relieved.
    """
    for key in by_cost[::-1]:
        if chosen[key] and rest[base_shard[key]] + cost[key] <= keep * limit:
            chosen[key] = False
            rest[base_shard[key]] += cost[key]
    count = int(chosen.sum())
    for key in by_cost[::-1]:
        if count > most and chosen[key]:
            chosen[key] = False
            rest[base_shard[key]] += cost[key]
            count -= 1
    for key in by_cost:
        shard = base_shard[key]
        if not chosen[key] and rest[shard] > limit and min(cost[key], rest[shard] - cost[key]) > least[shard]:
            if count >= most:
                cheapest = -1
                for other in by_cost:
                    if chosen[other]:
                        cheapest = other
                if cheapest < 0 or cost[cheapest] >= cost[key]:
                    continue
                back = base_shard[cheapest]
                load = rest[back] + cost[cheapest] - (cost[key] if back == shard else 0.0)
                if load > max(limit, rest[shard]):
                    continue
                chosen[cheapest] = False
                rest[back] += cost[cheapest]
                count -= 1
            chosen[key] = True
            rest[shard] -= cost[key]
            count += 1
    for key in by_cost:
        shard = base_shard[key]
        gain = min(cost[key], rest[shard] - cost[key])
        if not chosen[key] and rest[shard] > limit and tolerance < gain <= least[shard]:
            return True
    return False
