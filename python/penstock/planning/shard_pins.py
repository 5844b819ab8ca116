"""Which hashes of keys are pinned in the next batch, by what the last one has shown.

A hash is pinned as soon as a batch shows that it pays, and returns to its base shard when batches have shown for a
while that nothing is lost by it: a key that is hot every other batch stays where it is.
"""

from dataclasses import dataclass

import numpy as np

from penstock.planning.executors import Worth
from penstock.planning.load import Loads
from penstock.planning.pinning import Pins, pin
from penstock.planning.spark_hash import Hashes
from penstock.state.layout import PinSlots

WINDOW = 10
"""Batches in a row that must have shown that a pinned key could return to its base shard."""


@dataclass(frozen=True)
class ShardLoads:
    """A batch by the layout that it had; arrays have the shape ``(base_shards + len(pin_slots),)``.

    Parameters
    ----------
    base_shards
        S, the number of base shards: a hash that is not pinned is in shard hash modulo S.
    pin_slots
        Which hashes are pinned.
    load
        Of each shard, in ms.
    state_bytes
        Of each shard.
    """

    base_shards: int
    pin_slots: PinSlots
    load: Loads
    state_bytes: Loads

    def at_home(self, amount: Loads) -> Loads:
        """Sum what pinned shards have to that of their base shards; shape ``(base_shards,)``."""
        whole = amount[: self.base_shards].astype(np.float64)
        for slot, pinned in enumerate(self.pin_slots):
            if pinned is not None:
                whole[pinned % self.base_shards] += amount[self.base_shards + slot]
        return whole


@dataclass(frozen=True)
class PinPlan:
    """What shall be pinned.

    Parameters
    ----------
    hashes
        Ascending.
    reason
        Why no others; empty where there is nothing to say.
    """

    hashes: list[int]
    reason: str = ""


class PinPlanner:
    """Plans the pins of one region from batch to batch."""

    def __init__(self) -> None:
        self._idle: dict[int, int] = {}

    def plan(
        self,
        batch: ShardLoads,
        heavy: Hashes,
        cost: Loads,
        tasks: int,
        *,
        theta: float,
        most: int,
        worth: Worth | None = None,
    ) -> PinPlan:
        """Plan from a batch.

        Parameters
        ----------
        heavy, cost
            Hashes of keys that had much of the batch, and what they cost in ms; shape ``(keys,)``. What pinned ones
            cost is known from their shards.
        tasks
            N.
        theta
            Largest load of a task over the mean, above 1.
        most
            Hashes that may be pinned.
        worth
            What a copy of a shard's state takes, and over how many batches a gain counts.
        """
        pinned = [h for h in batch.pin_slots if h is not None]
        if batch.load.sum() <= 0:
            return PinPlan(sorted(pinned))
        known = dict(zip(heavy.tolist(), cost.tolist(), strict=True))
        keys = np.array(list(dict.fromkeys([*pinned, *known])), dtype=np.int64)
        known |= {h: batch.load[batch.base_shards + i] for i, h in enumerate(batch.pin_slots) if h is not None}
        costs = np.array([known[int(h)] for h in keys], dtype=np.float64)
        worth = Worth() if worth is None else worth
        price = (worth.move_ms + batch.at_home(batch.state_bytes) / worth.bytes_per_ms) / worth.horizon
        plan = pin(
            batch.at_home(batch.load),
            np.mod(keys, batch.base_shards).astype(np.int32),
            costs,
            np.arange(len(keys)) < len(pinned),
            tasks,
            theta=theta,
            most=most,
            price=price,
        )
        chosen = [int(h) for h in keys[plan.pinned]]
        leaving = [int(h) for h in keys[: len(pinned)][~plan.pinned[: len(pinned)]]]
        self._idle = {h: self._idle.get(h, 0) + 1 for h in leaving}
        stay = sorted((h for h in leaving if self._idle[h] < WINDOW), key=lambda h: (-known[h], h))
        stay = stay[: max(0, most - len(chosen))]
        return PinPlan(sorted(chosen + stay), _reason(plan, len(stay), most, worth))


def _reason(plan: Pins, staying: int, most: int, worth: Worth) -> str:
    if plan.left_out:
        return f"{plan.left_out} more keys would be pinned, and penstock.pinned.max={most} may be"
    if plan.too_dear:
        return f"cost exceeds gain: to pin a key takes longer than it saves in {worth.horizon} batches"
    if staying:
        return f"within hysteresis: {staying} pinned keys are unpinned after {WINDOW} batches that do not need it"
    return ""
