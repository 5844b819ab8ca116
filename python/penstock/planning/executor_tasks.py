"""Decides how many tasks of each region run on each executor, by Elasticutor's assignment of cores (section 4.2).

Elasticutor's executor is a region here, its node is a Spark executor, and a region gets a core for each of its tasks. A
region has no main process, because its rows come from all map outputs. So no region is data-intensive in the sense of
the paper, and only the state that moves is minimised.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.planning.cores import Counts, Demand, Floats, assign

MAX_EXECUTORS = 256
"""With more executors, tasks are divided by cores, because the time of the assignment grows quadratically."""


@dataclass(frozen=True)
class RegionTasks:
    """A region that needs cores.

    Parameters
    ----------
    wanted
        Number of tasks that the region should have, at least 1.
    now
        Number of its tasks on each executor, all 0 if they were not divided among executors; shape ``(executors,)``.
    state_bytes
        Size of its state on each executor; shape ``(executors,)``.
    """

    wanted: int
    now: Counts
    state_bytes: Floats


def divide(cores: Counts, regions: Sequence[RegionTasks], index: int) -> Counts | None:
    """Return the number of one region's tasks on each executor.

    Parameters
    ----------
    cores
        Cores of each executor, above 0; shape ``(executors,)``.
    regions
        All running regions, in an order that does not change, so that calls for different regions are parts of the same
        assignment.
    index
        Index of the region in `regions`.

    Returns
    -------
    array or None
        Number of tasks on each executor: as many as the region should have, at most the cores of each executor, and so
        that little state moves. If there are cores for the tasks of all regions, no core has two tasks. None if tasks
        go by cores: the region is alone and has at least one task per executor, it has more tasks than there are cores,
        or there is only one executor or more than `MAX_EXECUTORS`.
    """
    asked, total = regions[index], int(cores.sum())
    if sum(region.wanted for region in regions) > total:
        # Not all tasks can run at once, so the regions take turns, and each uses all cores.
        regions, index = [asked], 0
    alone = len(regions) == 1 and asked.wanted >= len(cores)
    if asked.wanted > total or alone or not 1 < len(cores) <= MAX_EXECUTORS:
        return None
    wanted = np.array([region.wanted for region in regions], dtype=np.int64)
    state = np.array([region.state_bytes.sum() for region in regions], dtype=np.float64)
    now = np.column_stack([_now(region) for region in regions])
    _fit(now, cores, state)
    for column, region in zip(now.T, regions, strict=True):
        _give_back(column, region.wanted)
    zeros = np.zeros(len(regions))
    made = assign(now, cores, Demand(wanted, state, zeros, zeros.astype(np.int64)))
    return made.cores[:, index].copy()


def _now(region: RegionTasks) -> Counts:
    """Return the region's tasks on each executor; if not divided, in proportion to its state, by largest remainder."""
    if region.now.any():
        return region.now.astype(np.int64)
    total = float(region.state_bytes.sum())
    if total <= 0:
        return np.zeros(len(region.now), dtype=np.int64)
    exact = region.state_bytes * (region.wanted / total)
    tasks = np.floor(exact).astype(np.int64)
    most = np.argsort(-(exact - tasks), kind="stable")[: region.wanted - int(tasks.sum())]
    tasks[most] += 1
    return tasks


def _fit(now: Counts, cores: Counts, state: Floats) -> None:
    """Reduce tasks to the cores of each executor, taking first from regions with the least state per task."""
    for executor in np.flatnonzero(now.sum(axis=1) > cores):
        while now[executor].sum() > cores[executor]:
            share = np.where(now[executor] > 0, state / np.maximum(1, now.sum(axis=0)), np.inf)
            now[executor, int(np.argmin(share))] -= 1


def _give_back(now: Counts, wanted: int) -> None:
    """Give back cores of one region, each where the least state has to leave."""
    before = now / max(1, int(now.sum()))
    while (total := int(now.sum())) > wanted:
        # State that leaves if an executor gives up a core: from that executor, and from all others.
        left = np.maximum(0.0, before - now / (total - 1))
        own = np.maximum(0.0, before - (now - 1) / (total - 1))
        leaves = np.where(now > 0, left.sum() - left + own, np.inf)
        now[int(np.argmin(leaves))] -= 1
