"""Policies for comparison: each places the keys of a batch by what it knew before, and then learns from the batch."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from penstock.planning import mixed, shard_policies
from penstock.planning.executors import Worth, place
from penstock.planning.key_routing import KeyPlan, KeyStatistics
from penstock.planning.load import Loads, Placement, loads
from penstock.planning.longest_first import longest_first
from penstock.planning.partial_key_grouping import partial_key_grouping
from penstock.planning.readj import readj_tuned
from penstock.planning.shard_pins import PinPlanner, ShardLoads
from penstock.planning.spark_hash import Hashes, hash_ints, partition


@dataclass(frozen=True)
class Batch:
    """Rows of a batch.

    Parameters
    ----------
    key
        Number of each row's key; shape ``(rows,)``.
    cost
        Cost of each row, in any unit; shape ``(rows,)``.
    memory
        Size of each key's state after the batch; shape ``(keys,)``, with all keys of the trace.
    rows
        Number of real rows that each row stands for; shape ``(rows,)``. None means 1 each.
    """

    key: NDArray[np.int64]
    cost: Loads
    memory: Loads
    rows: Loads | None = None

    @cached_property
    def cost_by_key(self) -> Loads:
        """Sum of the costs of each key's rows, shape ``(keys,)``."""
        return loads(self.key, self.cost, len(self.memory))

    def rows_by(self, group: NDArray[np.int64] | Placement, groups: int) -> Loads:
        """Sum of the rows of each group of keys, given the group of each key; shape ``(groups,)``."""
        rows = np.ones(len(self.key)) if self.rows is None else self.rows
        return loads(group[self.key], rows, groups)


@dataclass(frozen=True)
class Setting:
    """Parameters that policies share.

    Parameters
    ----------
    hashes
        Spark's hash of each key; shape ``(keys,)``.
    tasks, shards
        Number of tasks, and number of base shards.
    theta
        Largest imbalance that is accepted, above 1.
    table
        Largest number of entries of a routing table.
    pinned
        Largest number of keys that hybrid may pin.
    beta
        Weight of cost against memory in MinMig and Mixed.
    executors
        Number of executors among which hybrid divides the tasks; shards move between executors only by plan. Must
        divide `tasks`.
    total
        Cost of each key over all batches, which only `Hindsight` knows; shape ``(keys,)``.
    """

    hashes: Hashes
    tasks: int
    shards: int = 256
    theta: float = 1.003
    table: int = 3000
    pinned: int = 16
    beta: float = mixed.DEFAULT_BETA
    executors: int = 1
    total: Loads | None = None


@dataclass(frozen=True)
class Step:
    """What a policy did between two batches.

    Parameters
    ----------
    migrated
        Size of the state that moves.
    table
        Number of entries of its routing table, or of pinned keys.
    """

    migrated: float = 0.0
    table: int = 0


class Policy(Protocol):
    """Places the keys of each batch on tasks."""

    def loads(self, batch: Batch) -> Loads:
        """Return the load of each task in a batch, placed by what was known before; shape ``(tasks,)``."""

    def plan(self, batch: Batch) -> Step:
        """Learn from a batch that has ended, and place keys for the next one."""


class Static:
    """Plain Spark: a key's partition is its hash modulo the number of tasks."""

    def __init__(self, setting: Setting) -> None:
        self._task = partition(setting.hashes, setting.tasks)
        self._tasks = setting.tasks

    def loads(self, batch: Batch) -> Loads:
        """See `Policy`."""
        return loads(self._task, batch.cost_by_key, self._tasks)

    def plan(self, _: Batch) -> Step:
        """Return an empty step: this policy never moves state."""
        return Step()


class Hindsight:
    """Places keys once, longest processing time first, by their cost over all batches.

    A policy can be better than this only because it moves keys.
    """

    def __init__(self, setting: Setting) -> None:
        if setting.total is None:
            raise ValueError("hindsight needs the cost of each key over all batches")
        self._task = longest_first(setting.total, setting.tasks)
        self._tasks = setting.tasks

    def loads(self, batch: Batch) -> Loads:
        """See `Policy`."""
        return loads(self._task, batch.cost_by_key, self._tasks)

    def plan(self, _: Batch) -> Step:
        """Return an empty step: this policy never moves state."""
        return Step()


class Shuffled:
    """Sends rows to any task, whatever their key: perfect balance without keyed state (Ideal of Fang et al.)."""

    def __init__(self, setting: Setting) -> None:
        self._tasks = setting.tasks

    def loads(self, batch: Batch) -> Loads:
        """See `Policy`."""
        return np.full(self._tasks, float(batch.cost.sum()) / self._tasks)

    def plan(self, _: Batch) -> Step:
        """Return an empty step: there is nothing to plan."""
        return Step()


class TwoChoices:
    """Partial key grouping: each row goes to the lighter of its key's two tasks."""

    def __init__(self, setting: Setting) -> None:
        self._first = partition(setting.hashes, setting.tasks)
        self._second = partition(hash_ints(setting.hashes, seed=17), setting.tasks)
        self._tasks = setting.tasks

    def loads(self, batch: Batch) -> Loads:
        """See `Policy`."""
        return partial_key_grouping(self._first[batch.key], self._second[batch.key], batch.cost, self._tasks)

    def plan(self, _: Batch) -> Step:
        """Return an empty step: this policy never moves state."""
        return Step()


Planner = Callable[[KeyStatistics], KeyPlan]


class RoutedKeys:
    """A routing table over the hash, planned from the last batch's statistics (Fang et al.)."""

    def __init__(self, setting: Setting, planner: Planner) -> None:
        self._home = partition(setting.hashes, setting.tasks)
        self._current = self._home
        self._tasks = setting.tasks
        self._planner = planner

    def loads(self, batch: Batch) -> Loads:
        """See `Policy`."""
        return loads(self._current, batch.cost_by_key, self._tasks)

    def plan(self, batch: Batch) -> Step:
        """See `Policy`."""
        memory = np.maximum(batch.memory, 1.0)
        keys = KeyStatistics(batch.cost_by_key, memory, self._home, self._current, self._tasks)
        plan = self._planner(keys)
        self._current = plan.destination
        return Step(float(batch.memory[keys.current != plan.destination].sum()), plan.table_size(keys))


class PlacedShards:
    """Shards placed on tasks by the last batch's loads, as the planner sidecar places them."""

    def __init__(self, setting: Setting, name: str) -> None:
        self._name = name
        self._shard = partition(setting.hashes, setting.shards)
        self._task: Placement = (np.arange(setting.shards) % setting.tasks).astype(np.int32)
        self._setting = setting

    def loads(self, batch: Batch) -> Loads:
        """See `Policy`."""
        return loads(self._task[self._shard], batch.cost_by_key, self._setting.tasks)

    def plan(self, batch: Batch) -> Step:
        """See `Policy`."""
        load = loads(self._shard, batch.cost_by_key, self._setting.shards)
        memory = loads(self._shard, batch.memory, self._setting.shards)
        last = shard_policies.ShardStatistics(self._task, load, memory)
        task = shard_policies.place(self._name, last, self._setting.tasks, self._setting.theta)
        moved = task != self._task
        self._task = task
        return Step(float(memory[moved].sum()))


class Hybrid:
    """Penstock's policy: binds shards to tasks by rows and learnt costs, pins keys, and moves shards between executors.

    Binding moves no state, because the tasks of an executor share it. Pinning moves state from one shard to another on
    the same executor, and plans for executors move shards. Both happen whenever a batch gains by them: the costs of a
    trace may be in any unit, so that they cannot be compared with the time that a move takes.
    """

    def __init__(self, setting: Setting) -> None:
        self._home = partition(setting.hashes, setting.shards)
        self._shard = self._home
        self._pins = PinPlanner()
        self._pinned: tuple[int, ...] = ()
        self._setting = setting
        shards = setting.shards + setting.pinned
        self._cost_per_row: Loads = np.full(shards, np.nan)
        self._executor: Placement = (np.arange(shards) % setting.executors).astype(np.int32)
        self._cores: Loads = np.full(setting.executors, setting.tasks / setting.executors)

    def loads(self, batch: Batch) -> Loads:
        """See `Policy`."""
        rows = batch.rows_by(self._shard, len(self._cost_per_row))
        known = self._cost_per_row[np.isfinite(self._cost_per_row)]
        per_row = np.where(np.isfinite(self._cost_per_row), self._cost_per_row, known.mean() if len(known) else 1.0)
        task = self._bound(rows * per_row)
        return loads(task[self._shard], batch.cost_by_key, self._setting.tasks)

    def plan(self, batch: Batch) -> Step:
        """See `Policy`."""
        shards, before = self._setting.shards, self._shard
        self._pin(batch)
        rows = batch.rows_by(self._shard, len(self._cost_per_row))
        cost = loads(self._shard, batch.cost_by_key, len(self._cost_per_row))
        self._cost_per_row = np.where(rows > 0, cost / np.maximum(rows, 1), np.nan)
        repinned = float(batch.memory[(before >= shards) != (self._shard >= shards)].sum())
        travelled = self._travel(cost, loads(self._shard, batch.memory, len(cost)))
        return Step(repinned + travelled, len(self._pinned))

    def _pin(self, batch: Batch) -> None:
        """Plan which hashes have a shard of their own; a new shard starts on the executor of its base shard."""
        setting = self._setting
        used = setting.shards + len(self._pinned)
        amounts = [loads(self._shard, amount, used) for amount in (batch.cost_by_key, batch.memory)]
        heavy = batch.cost_by_key > 0
        planned = self._pins.plan(
            ShardLoads(setting.shards, self._pinned, *amounts),
            setting.hashes[heavy],
            batch.cost_by_key[heavy],
            setting.tasks,
            theta=setting.theta,
            most=setting.pinned,
            worth=Worth(bytes_per_ms=float("inf"), move_ms=0.0),
        )
        chosen = tuple(planned.hashes)
        executor_of = dict(zip(self._pinned, self._executor[setting.shards :].tolist(), strict=False))
        self._shard = self._home.copy()
        for shard, pinned in enumerate(chosen, setting.shards):
            self._shard[setting.hashes == pinned] = shard
            self._executor[shard] = executor_of.get(pinned, self._executor[pinned % setting.shards])
        self._pinned = chosen

    def _bound(self, weight: Loads) -> Placement:
        each = self._setting.tasks // self._setting.executors
        task: Placement = np.empty(len(weight), dtype=np.int32)
        for executor in range(self._setting.executors):
            own = np.flatnonzero(self._executor == executor)
            task[own] = executor * each + longest_first(weight[own], each)
        return task

    def _travel(self, load: Loads, state: Loads) -> float:
        """Move shards between executors, and return the size of their state."""
        worth = Worth(bytes_per_ms=float("inf"), move_ms=0.0, theta=self._setting.theta, window=1)
        plan = place(self._executor, load, state, self._cores, worth)
        self._executor = plan.executor
        return float(state[plan.moves[:, 0]].sum())


def policy(name: str, setting: Setting) -> Policy:
    """Create a policy by name.

    Raises
    ------
    KeyError
        `POLICIES` has no policy of that name.
    """
    return POLICIES[name](setting)


def _routed(plan: Callable[[KeyStatistics, Setting], KeyPlan]) -> Callable[[Setting], Policy]:
    return lambda setting: RoutedKeys(setting, lambda keys: plan(keys, setting))


def _placed(name: str) -> Callable[[Setting], Policy]:
    return lambda setting: PlacedShards(setting, name)


POLICIES: dict[str, Callable[[Setting], Policy]] = {
    "static": Static,
    "hindsight": Hindsight,
    "hybrid": Hybrid,
    **{name: _placed(name) for name in shard_policies.POLICIES},
    # Fang et al. place keys, not shards.
    "mixed": _routed(lambda keys, s: mixed.mixed(keys, s.theta - 1.0, s.table, s.beta)),
    "minTable": _routed(lambda keys, s: mixed.min_table(keys, s.theta - 1.0)),
    "minMig": _routed(lambda keys, s: mixed.min_migration(keys, s.theta - 1.0, s.beta)),
    "readj": _routed(lambda keys, s: readj_tuned(keys, s.theta - 1.0)),
    "pkg": TwoChoices,
    "ideal": Shuffled,
}
"""Policies that `penstock simulate` compares, by name; the planner sidecar's are among them."""
