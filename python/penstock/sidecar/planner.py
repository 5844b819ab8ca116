"""What the sidecar knows of running queries, and what it plans for them."""

from collections import OrderedDict
from dataclasses import dataclass, field
from uuid import UUID

import numpy as np

from penstock.planning.forecast import Forecaster
from penstock.planning.load import Placement
from penstock.planning.shard_pins import PinPlanner, ShardLoads
from penstock.planning.shard_policies import ShardStatistics, place
from penstock.planning.task_count import TaskCount, TaskOverhead, follow, learn
from penstock.sidecar.measured import Measured
from penstock.state.layout import Places

MOST_REGIONS = 256
"""Regions that are remembered; those that were not measured for longest are forgotten first."""


@dataclass(frozen=True)
class Plan:
    """What a region should do from the next batch on.

    Parameters
    ----------
    tasks
        N.
    reason
        Why so many.
    task
        Of each shard, below N; none where shards are bound at the barrier.
    pinned
        Hashes that shall have a shard of their own, ascending; none where that is not planned.
    """

    tasks: int
    reason: str
    task: Placement | None = None
    pinned: list[int] | None = None


@dataclass
class _Region:
    home: int
    forecaster: Forecaster
    count: TaskCount
    overhead: TaskOverhead = field(default_factory=TaskOverhead)
    pins: PinPlanner = field(default_factory=PinPlanner)
    places: Places = ()

    def follow(self, places: Places) -> None:
        """Take over a layout: shards that go on keep their past."""
        if places != self.places:
            source = np.arange(self.home + len(places), dtype=np.int64)
            for place, pinned in enumerate(places):
                if pinned is None or place >= len(self.places) or self.places[place] != pinned:
                    source[self.home + place] = -1
            self.forecaster = self.forecaster.rearranged(source)
            self.places = places


class Planner:
    """Learns from batches and plans, region by region."""

    def __init__(self) -> None:
        self._regions: OrderedDict[tuple[UUID, int], _Region] = OrderedDict()

    def plan(self, measured: Measured) -> Plan:
        """Learn from a batch of a region, and plan its next."""
        region = self._region(measured)
        placing = measured.placing
        if measured.plans_tasks:
            tasks, reason = self._tasks(region, measured)
        else:
            tasks, reason = (placing.tasks if placing else measured.tasks), "as it was"
        task = None
        if placing is not None:
            last = ShardStatistics(placing.task, measured.load_ms, placing.state_bytes)
            task = place(placing.policy, last, tasks, placing.theta)
        return Plan(tasks, reason, task, self._pins(region, measured, tasks if measured.plans_tasks else None))

    def _pins(self, region: _Region, measured: Measured, planned: int | None) -> list[int] | None:
        pinning = measured.pinning
        if pinning is None:
            return None
        batch = ShardLoads(pinning.home, pinning.places, measured.load_ms, pinning.state_bytes)
        heavy = measured.load_of_keys_ms(pinning)
        tasks = pinning.tasks if planned is None else planned
        return region.pins.plan(batch, pinning.hashes, heavy, tasks, theta=pinning.theta, most=pinning.most)

    def _tasks(self, region: _Region, measured: Measured) -> tuple[int, str]:
        """Learn what tasks cost; give N, and why so many."""
        load = measured.load_ms
        most = min(measured.most, len(load))
        if len(measured.tasks_ms):
            busiest_ms = float(measured.work_ms.max())
            region.overhead = learn(region.overhead, measured.tasks, measured.stage_ms, busiest_ms)
        region.forecaster.observe(load)
        expected = region.forecaster.forecast().load
        # What was decided may not have come to be: a plan that was late, or another setting.
        region.count = TaskCount(measured.tasks, region.count.wanted, region.count.reason)
        region.count = follow(region.count, region.overhead, expected, most)
        return region.count.tasks, region.count.reason

    def _region(self, measured: Measured) -> _Region:
        key = (measured.run, measured.region)
        pinning = measured.pinning
        shards = len(measured.rows)
        region = self._regions.get(key)
        if region is not None and pinning is not None and pinning.home == region.home:
            region.follow(pinning.places)
        if region is None or region.forecaster.items != shards:
            places = () if pinning is None else pinning.places
            region = _Region(shards - len(places), Forecaster(shards), TaskCount(measured.tasks), places=places)
            self._regions[key] = region
        self._regions.move_to_end(key)
        while len(self._regions) > MOST_REGIONS:
            self._regions.popitem(last=False)
        return region
