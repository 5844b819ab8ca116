"""Plans which hashes of keys are pinned in the next batch, from the loads of the last one.

A hash is pinned as soon as a batch shows that it pays. It returns to its base shard only after several consecutive
batches have shown that nothing is lost by that, so that a key that is heavy in every other batch stays pinned.
"""

from dataclasses import dataclass

import numpy as np

from penstock.planning.executors import Worth
from penstock.planning.load import Loads
from penstock.planning.pinning import Pins, pin
from penstock.planning.spark_hash import Hashes
from penstock.state.layout import PinSlots

WINDOW = 10
"""Number of consecutive batches that must show that a pinned key could return to its base shard."""


@dataclass(frozen=True)
class ShardLoads:
    """Loads of a batch by the layout that it ran with; arrays have the shape ``(base_shards + len(pin_slots),)``.

    Parameters
    ----------
    base_shards
        Number of base shards (S). A hash that is not pinned is in shard hash modulo S.
    pin_slots
        Pinned hash of each pin slot, None for a free one.
    load
        Load of each shard, in ms.
    state_bytes
        Size of each shard's state.
    """

    base_shards: int
    pin_slots: PinSlots
    load: Loads
    state_bytes: Loads

    def at_home(self, amount: Loads) -> Loads:
        """Sum amounts by base shard, with pinned keys counted in their base shards; shape ``(base_shards,)``."""
        total = amount[: self.base_shards].astype(np.float64)
        for slot, pinned in enumerate(self.pin_slots):
            if pinned is not None:
                total[pinned % self.base_shards] += amount[self.base_shards + slot]
        return total


@dataclass(frozen=True)
class PinPlan:
    """The hashes that should be pinned.

    Parameters
    ----------
    hashes
        Hashes in ascending order.
    reason
        Why no other hashes are pinned or unpinned; empty if there is nothing to report.
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
        """Plan pins from the loads of a batch.

        Parameters
        ----------
        batch
            Loads of the batch's shards.
        heavy, cost
            Hashes of heavy keys in the batch, and their costs in ms; shape ``(keys,)``. For pinned keys the cost of
            their own shard is used instead.
        tasks
            Number of tasks (N).
        theta
            Largest imbalance of tasks that is accepted, above 1.
        most
            Largest number of hashes that may be pinned.
        worth
            Time that a copy of a shard's state takes, and number of batches over which a gain counts.
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
        return f"{plan.left_out} more keys would be pinned, but penstock.pinned.max={most} is the limit"
    if plan.too_expensive:
        return f"cost exceeds gain: pinning a key takes longer than it saves in {worth.horizon} batches"
    if staying:
        return f"within hysteresis: {staying} pinned keys are unpinned after {WINDOW} batches that do not need them"
    return ""
