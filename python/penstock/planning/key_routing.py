"""Routing of keys by hash with a table of exceptions (Fang et al., section 2): input and output of the planners."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock.planning.load import Loads, Placement, deviation, loads


@dataclass(frozen=True)
class KeyStatistics:
    """Statistics of the last interval by key; all arrays have the shape ``(keys,)``.

    Parameters
    ----------
    cost
        Cost of processing the key (c), not negative, in any unit.
    memory
        Size of the key's state over the window (S), above 0, in any unit.
    default
        Default destination, by the hash of the key.
    current
        Current destination. It differs from the default only if the routing table names the key.
    destinations
        Number of instances.
    """

    cost: Loads
    memory: Loads
    default: Placement
    current: Placement
    destinations: int

    @cached_property
    def load(self) -> Loads:
        """Current load of each destination, shape ``(destinations,)``."""
        return loads(self.current, self.cost, self.destinations)

    @property
    def table(self) -> np.typing.NDArray[np.int64]:
        """Keys that are in the routing table."""
        return np.flatnonzero(self.current != self.default)


@dataclass(frozen=True)
class KeyPlan:
    """The destination that each key should have.

    Parameters
    ----------
    destination
        Destination of each key; shape ``(keys,)``.
    load
        Load of each destination with the plan, if costs do not change.
    moved_back
        Number of table entries that were given up before planning (n of Mixed).
    fallbacks
        Number of keys that fitted nowhere.
    """

    destination: Placement
    load: Loads
    moved_back: int
    fallbacks: int

    @property
    def deviation(self) -> float:
        """Largest distance of a load from the mean, over the mean."""
        return deviation(self.load)

    def table_size(self, keys: KeyStatistics) -> int:
        """Count the entries of the routing table with the plan."""
        return int(np.count_nonzero(self.destination != keys.default))

    def migrated(self, keys: KeyStatistics) -> float:
        """Sum the state that must move."""
        return float(keys.memory[self.destination != keys.current].sum())
