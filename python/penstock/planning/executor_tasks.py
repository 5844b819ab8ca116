"""How many tasks of which region run on which executor: Elasticutor's assignment of cores (section 4.2) at work.

What Elasticutor calls an executor is a region here, what it calls a node is a Spark executor, and a region gets a core
for each of its tasks. A region has no main process, because its rows come from all map outputs: no region is
data-intensive in the sense of the paper, and what is left to minimise is the state that moves.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.planning.cores import Counts, Demand, Floats, assign

MAX_EXECUTORS = 256
"""With more, tasks are divided by cores: the assignment's time grows with their square."""


@dataclass(frozen=True)
class RegionTasks:
    """A region that wants cores.

    Parameters
    ----------
    wanted
        Tasks that it is to have, at least 1.
    now
        Its tasks on each executor; all 0 where they were not divided among executors. Shape ``(executors,)``.
    state_bytes
        Of its state on each executor; shape ``(executors,)``.
    """

    wanted: int
    now: Counts
    state_bytes: Floats


def divide(cores: Counts, regions: Sequence[RegionTasks], of: int) -> Counts | None:
    """Give one region's tasks on each executor.

    Parameters
    ----------
    cores
        Of each executor, above 0; shape ``(executors,)``.
    regions
        All that run, in an order that stays: the same for whichever is asked for gives each its part of the same whole.
    of
        Number of the one that is asked for.

    Returns
    -------
    array or None
        As many as it wants, on no executor more than it has cores, and such that little state moves; where there are
        cores for the tasks of all regions, none has two. None where that decides nothing: it has the executors for
        itself and a task for each at least, so that its tasks go by cores; or it has more tasks than there are cores.
    """
    asked, total = regions[of], int(cores.sum())
    if sum(region.wanted for region in regions) > total:
        # They take turns.
        regions, of = [asked], 0
    alone = len(regions) == 1 and asked.wanted >= len(cores)
    if asked.wanted > total or alone or not 1 < len(cores) <= MAX_EXECUTORS:
        return None
    wanted = np.array([region.wanted for region in regions], dtype=np.int64)
    state = np.array([region.state_bytes.sum() for region in regions], dtype=np.float64)
    now = np.column_stack([_now(region) for region in regions])
    _fit(now, cores, state)
    for column, region in zip(now.T, regions, strict=True):
        _give_back(column, region.wanted)
    nothing = np.zeros(len(regions))
    made = assign(now, cores, Demand(wanted, state, nothing, nothing.astype(np.int64)))
    return made.cores[:, of].copy()


def _now(region: RegionTasks) -> Counts:
    """Give its tasks on each executor; where they were not divided, as its state is, by largest remainder."""
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
    """Take from regions with least state, for each of their tasks, what is more than an executor has."""
    for executor in np.flatnonzero(now.sum(axis=1) > cores):
        while now[executor].sum() > cores[executor]:
            share = np.where(now[executor] > 0, state / np.maximum(1, now.sum(axis=0)), np.inf)
            now[executor, int(np.argmin(share))] -= 1


def _give_back(now: Counts, wanted: int) -> None:
    """Give back cores of one region, each where least state has to leave for it."""
    before = now / max(1, int(now.sum()))
    while (total := int(now.sum())) > wanted:
        # Without a core of executor w: what is over there leaves, and so does what is over elsewhere.
        left = np.maximum(0.0, before - now / (total - 1))
        own = np.maximum(0.0, before - (now - 1) / (total - 1))
        leaves = np.where(now > 0, left.sum() - left + own, np.inf)
        now[int(np.argmin(leaves))] -= 1
