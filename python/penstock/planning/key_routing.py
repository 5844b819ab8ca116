"""Keys that a hash routes, and a table of exceptions (Fang et al., section 2): what planners get and answer."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock.planning.load import Loads, Placement, deviation, loads


@dataclass(frozen=True)
class KeyStatistics:
    """The last interval, key by key; all arrays have the shape ``(keys,)``.

    Parameters
    ----------
    cost
        What processing of the key took (c), not negative, in any unit.
    memory
        Size of its state over the window (S), above 0, in any unit.
    default
        Where the hash puts it.
    current
        Where it is: elsewhere only if the routing table says so.
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
        """Load of each destination as it is, shape ``(destinations,)``."""
        return loads(self.current, self.cost, self.destinations)

    @property
    def table(self) -> np.typing.NDArray[np.int64]:
        """Keys of which the routing table speaks."""
        return np.flatnonzero(self.current != self.default)


@dataclass(frozen=True)
class KeyPlan:
    """Where keys shall go.

    Parameters
    ----------
    destination
        Of each key, shape ``(keys,)``.
    load
        Of each destination then, if costs stay what they are.
    moved_back
        How many entries of the table were given up before planning (n of Mixed).
    fallbacks
        Keys that fitted nowhere.
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
        """Count the entries that the routing table has then."""
        return int(np.count_nonzero(self.destination != keys.default))

    def migrated(self, keys: KeyStatistics) -> float:
        """Sum up the state that must move."""
        return float(keys.memory[self.destination != keys.current].sum())
