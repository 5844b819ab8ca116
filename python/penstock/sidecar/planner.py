"""What the sidecar knows of running queries, and what it plans for them."""

from collections import OrderedDict
from dataclasses import dataclass, field
from uuid import UUID

from penstock.planning.forecast import Forecaster
from penstock.planning.load import Placement
from penstock.planning.shard_policies import ShardStatistics, place
from penstock.planning.task_count import TaskCount, TaskOverhead, follow, learn
from penstock.sidecar.measured import Measured

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
    """

    tasks: int
    reason: str
    task: Placement | None = None


@dataclass
class _Region:
    forecaster: Forecaster
    count: TaskCount
    overhead: TaskOverhead = field(default_factory=TaskOverhead)


class Planner:
    """Learns from batches and plans, region by region."""

    def __init__(self) -> None:
        self._regions: OrderedDict[tuple[UUID, int], _Region] = OrderedDict()

    def plan(self, measured: Measured) -> Plan:
        """Learn from a batch of a region, and plan its next."""
        placing = measured.placing
        if measured.plans_tasks:
            tasks, reason = self._tasks(measured)
        else:
            tasks, reason = (placing.tasks if placing else measured.tasks), "as it was"
        if placing is None:
            return Plan(tasks, reason)
        last = ShardStatistics(placing.task, measured.load_ms, placing.state_bytes)
        return Plan(tasks, reason, place(placing.policy, last, tasks, placing.theta))

    def _tasks(self, measured: Measured) -> tuple[int, str]:
        """Learn what tasks cost; give N, and why so many."""
        region = self._region(measured)
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
        shards = len(measured.rows)
        region = self._regions.get(key)
        if region is None or region.forecaster.items != shards:
            region = _Region(Forecaster(shards), TaskCount(measured.tasks))
            self._regions[key] = region
        self._regions.move_to_end(key)
        while len(self._regions) > MOST_REGIONS:
            self._regions.popitem(last=False)
        return region
