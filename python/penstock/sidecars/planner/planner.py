"""State that the planner sidecar keeps about running queries, and the plans that it makes for them."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from penstock.planning.attributed import Attributed
from penstock.planning.attribution import Batch
from penstock.planning.cores import Counts
from penstock.planning.executor_tasks import RegionTasks, divide
from penstock.planning.executors import ExecutorPlan, Worth
from penstock.planning.executors import place as place_on_executors
from penstock.planning.forecast import Forecaster
from penstock.planning.load import Loads, Placement
from penstock.planning.scaling import Scale
from penstock.planning.scaling import follow as follow_demand
from penstock.planning.shard_pins import PinPlan, PinPlanner, ShardLoads
from penstock.planning.shard_policies import ShardStatistics, place
from penstock.planning.task_count import TaskCount, TaskOverhead, follow, learn
from penstock.sidecars.planner.demand import Demand
from penstock.sidecars.planner.measured import Homing, Measured
from penstock.state.layout import PinSlots

MAX_MOVES = 256
"""Largest number of shard moves between executors in one plan. The driver makes the first ones, up to a byte limit."""
MAX_REGIONS = 256
"""Largest number of regions that are remembered. Those that were not measured for longest are dropped first."""
IDLE_S = 600.0
"""A region that was not measured for this many seconds no longer counts when cores are divided."""


@dataclass(frozen=True)
class Plan:
    """What a region should do from the next batch on.

    Parameters
    ----------
    tasks
        Number of tasks (N).
    reason
        Why this number of tasks.
    task
        Task of each shard, below N; None if shards are bound at the barrier.
    pins
        Hashes that should have a shard of their own; None if pins are not planned.
    row_ns
        Time of a row of each shard, estimated from the times of tasks; None if there is no reliable estimate.
    homes
        Executor that each shard should be on; None if that is not planned.
    executor_tasks
        Number of tasks on each executor, with sum N; None if tasks go by cores.
    """

    tasks: int
    reason: str
    task: Placement | None = None
    pins: PinPlan | None = None
    row_ns: NDArray[np.int64] | None = None
    homes: ExecutorPlan | None = None
    executor_tasks: Counts | None = None


@dataclass(frozen=True)
class _Claim:
    """The tasks that a region needs, the executors it runs on, and the time of that information."""

    executors: tuple[str, ...]
    tasks: RegionTasks
    at_s: float


@dataclass
class _Region:
    base_shards: int
    forecaster: Forecaster
    count: TaskCount
    overhead: TaskOverhead = field(default_factory=TaskOverhead)
    pins: PinPlanner = field(default_factory=PinPlanner)
    attributed: Attributed = field(default_factory=Attributed)
    pin_slots: PinSlots = ()
    above: int = 0
    claim: _Claim | None = None

    def follow(self, pin_slots: PinSlots) -> None:
        """Switch to a new layout; shards that continue keep their history."""
        if pin_slots != self.pin_slots:
            source = np.arange(self.base_shards + len(pin_slots), dtype=np.int64)
            for slot, pinned in enumerate(pin_slots):
                if pinned is None or slot >= len(self.pin_slots) or self.pin_slots[slot] != pinned:
                    source[self.base_shards + slot] = -1
            self.forecaster = self.forecaster.rearranged(source)
            self.attributed = self.attributed.rearranged(source)
            self.pin_slots = pin_slots


class Planner:
    """Learns from batches and makes plans, region by region.

    Parameters
    ----------
    clock_s
        Returns a monotonic time in seconds.
    """

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._regions: OrderedDict[tuple[UUID, int], _Region] = OrderedDict()
        self._scales: OrderedDict[UUID, Scale] = OrderedDict()

    def plan(self, measured: Measured) -> Plan:
        """Learn from a batch of a region, and plan its next batch.

        If that fails with any error, the region is forgotten; other regions are not affected.
        """
        try:
            return self._plan(measured)
        except Exception:
            # The region may have learnt from only a part of the batch.
            self._regions.pop((measured.run, measured.region), None)
            raise

    def _plan(self, measured: Measured) -> Plan:
        region = self._region(measured)
        row_ms = _row_ms(region, measured)
        load = measured.load_ms if row_ms is None else measured.rows * row_ms
        placing = measured.placing
        if measured.plans_tasks or measured.homing is not None:
            region.forecaster.observe(load)
        if measured.plans_tasks:
            tasks, reason = _tasks(region, measured)
        else:
            tasks, reason = (placing.tasks if placing else measured.tasks), "not planned"
        task = None
        if placing is not None:
            task = place(placing.policy, ShardStatistics(placing.task, load, placing.state_bytes), tasks, placing.theta)
        pins = _pins(region, measured, load, row_ms, tasks)
        row_ns = None if row_ms is None else (row_ms * 1e6).astype(np.int64)
        if measured.homing is None:
            return Plan(tasks, reason, task, pins, row_ns)
        executor_tasks = self._executor_tasks(region, measured.homing, tasks)
        return Plan(tasks, reason, task, pins, row_ns, _homes(region, measured.homing, executor_tasks), executor_tasks)

    def _executor_tasks(self, region: _Region, homing: Homing, tasks: int) -> Counts | None:
        """Assign cores to the regions on the same executors; return this region's tasks on each executor."""
        now_s = self._clock_s()
        region.claim = _Claim(homing.executors, RegionTasks(tasks, homing.tasks, homing.bytes_by_executor), now_s)
        # Sorted, so that the order is the same for each of these regions.
        claims = [
            claim
            for _, claim in sorted((key, known.claim) for key, known in self._regions.items() if known.claim)
            if claim.executors == homing.executors and claim.at_s >= now_s - IDLE_S
        ]
        index = next(i for i, claim in enumerate(claims) if claim is region.claim)
        return divide(homing.cores.astype(np.int64), [claim.tasks for claim in claims], index)

    def scale(self, demand: Demand) -> Scale:
        """Learn from a batch of a query, and decide how many executors it needs; an error changes nothing."""
        known = self._scales.get(demand.run, Scale(demand.executors, "first batch"))
        # The previous decision may not have been carried out, or not yet.
        scale = follow_demand(replace(known, executors=demand.executors), demand.was, demand.bounds)
        self._scales[demand.run] = scale
        self._scales.move_to_end(demand.run)
        while len(self._scales) > MAX_REGIONS:
            self._scales.popitem(last=False)
        return scale

    def _region(self, measured: Measured) -> _Region:
        key = (measured.run, measured.region)
        pinning = measured.pinning
        shards = len(measured.rows)
        region = self._regions.get(key)
        if region is not None and pinning is not None and pinning.base_shards == region.base_shards:
            region.follow(pinning.pin_slots)
        if region is None or region.forecaster.items != shards:
            pin_slots = () if pinning is None else pinning.pin_slots
            region = _Region(
                shards - len(pin_slots), Forecaster(shards), TaskCount(measured.tasks), pin_slots=pin_slots
            )
            self._regions[key] = region
        self._regions.move_to_end(key)
        while len(self._regions) > MAX_REGIONS:
            self._regions.popitem(last=False)
        return region


def _row_ms(region: _Region, measured: Measured) -> Loads | None:
    """Learn the time of rows from the times of tasks; None if that is not needed or not reliable."""
    if measured.ran_on is None:
        return None
    return region.attributed.observe(Batch(measured.ran_on, measured.rows.astype(np.float64), measured.work_ms))


def _homes(region: _Region, homing: Homing, executor_tasks: Counts | None) -> ExecutorPlan:
    """Plan the executor of each shard by the expected load."""
    worth = Worth(homing.bytes_per_ms, homing.move_ms, theta=homing.theta, most=MAX_MOVES)
    divided_anew = executor_tasks is not None and bool((executor_tasks != homing.tasks).any())
    if homing.changed or divided_anew:
        worth = replace(worth, window=1)
    expected = region.forecaster.forecast().load
    cores = homing.cores if executor_tasks is None else executor_tasks.astype(np.float64)
    plan = place_on_executors(homing.executor, expected, homing.state_bytes, cores, worth, region.above)
    region.above = plan.above
    if executor_tasks is None:
        return plan
    where = f"{executor_tasks.sum()} tasks on {np.count_nonzero(executor_tasks)} of {len(executor_tasks)} executors"
    return replace(plan, reason=f"{plan.reason}; {where}")


def _tasks(region: _Region, measured: Measured) -> tuple[int, str]:
    """Learn the overhead of tasks; return the number of tasks and the reason for it."""
    most = min(measured.most, len(measured.rows))
    if len(measured.tasks_ms):
        busiest_ms = float(measured.work_ms.max())
        region.overhead = learn(region.overhead, measured.tasks, measured.stage_ms, busiest_ms)
    expected = region.forecaster.forecast().load
    # The previous decision may not have been applied, because the plan was late or a setting changed.
    region.count = TaskCount(measured.tasks, region.count.wanted, region.count.reason)
    region.count = follow(region.count, region.overhead, expected, most)
    return region.count.tasks, region.count.reason


def _pins(region: _Region, measured: Measured, load: Loads, row_ms: Loads | None, planned: int) -> PinPlan | None:
    """Plan pinned hashes; None if they are not planned."""
    pinning = measured.pinning
    if pinning is None:
        return None
    batch = ShardLoads(pinning.base_shards, pinning.pin_slots, load, pinning.state_bytes)
    heavy = measured.load_of_keys_ms(pinning, row_ms)
    tasks = planned if measured.plans_tasks else pinning.tasks
    return region.pins.plan(batch, pinning.hashes, heavy, tasks, theta=pinning.theta, most=pinning.most)
