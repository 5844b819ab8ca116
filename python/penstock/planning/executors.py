"""Plans which executor holds which shards, with few moves, each of which must be worth its cost.

Within an executor the binder spreads shards over tasks in every batch without moving state. Between executors, state
has to travel. A plan therefore weighs the time that batches gain against the time that the moves take. Elasticutor's
assignment of cores (section 4.2) and the migration of Fang et al. (section 2.2) minimise the same cost in bytes instead
of time. Neither paper says when a move is not worth it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.planning.compiled import compiled
from penstock.planning.load import Loads, Placement, loads

LOST = -1
"""Executor number of a shard whose executor no longer exists."""
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Worth:
    """Parameters that decide whether a move is worth its cost.

    Parameters
    ----------
    bytes_per_ms
        Rate at which state travels, above 0.
    move_ms
        Fixed time of a move, in addition to the transfer of its bytes.
    horizon
        Number of batches over which a gain counts.
    theta
        Largest imbalance of executors that is accepted, above 1.
    most
        Largest number of moves in one plan.
    window
        Number of consecutive batches in which the imbalance must exceed theta before shards move.
    """

    bytes_per_ms: float = 100_000.0
    move_ms: float = 1.0
    horizon: int = 20
    theta: float = 1.1
    most: int = 16
    window: int = 3


@dataclass(frozen=True)
class ExecutorPlan:
    """The executor that each shard should be on.

    Parameters
    ----------
    executor
        Executor of each shard; shape ``(shards,)``.
    moves
        One row for each move: shard, executor before and executor after, the heaviest shard first; shape ``(moves,
        3)``. Includes the shards of lost executors.
    delta_before, delta_after
        Imbalance of executors without and with the plan. In both, shards of lost executors are already placed.
    gain_ms
        Time by which the plan shortens a batch.
    cost_ms
        Time that the moves take. Shards of lost executors cost nothing, because they are loaded in any case.
    above
        Number of consecutive batches in which the imbalance exceeded theta.
    reason
        Why shards move, or why they do not.
    """

    executor: Placement
    moves: NDArray[np.int64]
    delta_before: float
    delta_after: float
    gain_ms: float
    cost_ms: float
    above: int
    reason: str


def place(
    executor: Placement, load: Loads, state_bytes: Loads, cores: Loads, worth: Worth, above: int = 0
) -> ExecutorPlan:
    """Plan which shards move between executors after a batch.

    A batch takes as long as the executor with the most work per core. Each step chooses the move away from that
    executor that is worth most by itself. The plan consists of as many of the first steps as are worth most together.

    Parameters
    ----------
    executor
        Executor of each shard, `LOST` where it no longer exists; shape ``(shards,)``.
    load
        Expected work of each shard in a batch, in ms, not negative; shape ``(shards,)``.
    state_bytes
        Size of each shard's state; shape ``(shards,)``.
    cores
        Cores of each executor, at least one of them above 0; shape ``(executors,)``. An executor without cores is
        treated as lost.
    worth
        Parameters that decide whether a move is worth its cost.
    above
        `ExecutorPlan.above` of the previous plan.

    Returns
    -------
    ExecutorPlan
        A plan that is never worse than the current placement: its gain over the horizon is at least its cost. Ties go
        to the lower shard and the lower executor.
    """
    used = np.flatnonzero(cores)
    # Position of each executor among those with cores. LOST indexes the last element, which is LOST as well.
    number = np.full(len(cores) + 1, LOST, dtype=np.int32)
    number[used] = np.arange(len(used))
    cores = cores[used]
    start = _placed(number[executor], load, cores)
    cost_ms = state_bytes / worth.bytes_per_ms + worth.move_ms
    mean = float(load.sum() / cores.sum())
    before = _longest(start, load, cores)
    above = above + 1 if before > worth.theta * mean * (1 + _ROUNDING) else 0
    placed, reason = start, "balanced" if above == 0 else "within stabilisation window"
    if above >= max(1, worth.window):
        placed, reason = _weighed(start, load, cost_ms, cores, worth)
    after = _longest(placed, load, cores)
    to = used[placed].astype(np.int32)
    moved = np.flatnonzero(to != executor)
    moved = moved[np.argsort(-load[moved], kind="stable")]
    return ExecutorPlan(
        to,
        np.stack((moved, executor[moved].astype(np.int64), to[moved].astype(np.int64)), axis=1),
        before / mean if mean > 0 else 1.0,
        after / mean if mean > 0 else 1.0,
        _batch(start, load, cores) - _batch(placed, load, cores),
        float(cost_ms[placed != start].sum()),
        above,
        reason,
    )


def _placed(executor: Placement, load: Loads, cores: Loads) -> Placement:
    """Give shards of lost executors to others: heaviest first, each to the executor with the least resulting work."""
    placed = executor.astype(np.int32)
    lost = np.flatnonzero(placed == LOST)
    if len(lost):
        here = placed != LOST
        work = loads(placed[here], load[here], len(cores))
        for shard in lost[np.argsort(-load[lost], kind="stable")]:
            to = int(np.argmin((work + load[shard]) / cores))
            placed[shard] = to
            work[to] += load[shard]
    return placed


def _weighed(start: Placement, load: Loads, cost_ms: Loads, cores: Loads, worth: Worth) -> tuple[Placement, str]:
    limit = worth.theta * float(load.sum() / cores.sum())
    work = loads(start, load, len(cores))
    steps = _steps(start.copy(), load, cost_ms, cores, work, limit, float(worth.horizon), worth.most)
    if len(steps) == 0:
        return start, _why_nothing(start, load, cores, limit)
    best, best_worth, placed = start, 0.0, start.copy()
    longest = _batch(start, load, cores)
    for shard, to in steps:
        placed[shard] = to
        gained = (longest - _batch(placed, load, cores)) * worth.horizon
        net = gained - float(cost_ms[placed != start].sum())
        if net > best_worth:
            best, best_worth = placed.copy(), net
    if best is start:
        return start, "cost exceeds gain"
    return best, f"{best_worth:.0f} ms gained over {worth.horizon} batches, net of the cost of moving"


def _why_nothing(start: Placement, load: Loads, cores: Loads, limit: float) -> str:
    """Explain why no move was made: no executor has room for a shard, or no move is worth its cost."""
    work = loads(start, load, len(cores))
    busiest = int(np.argmax(work / cores))
    if load.max() >= work[busiest] / cores[busiest]:
        return _limit(int(np.argmax(load)), load)
    if len(_steps(start.copy(), load, np.zeros(len(load)), cores, work, limit, 1.0, 1)):
        return "cost exceeds gain"
    return _limit(int(np.argmax(np.where(start == busiest, load, -1.0))), load)


def _limit(shard: int, load: Loads) -> str:
    return f"one shard is the limit: {shard} has {load[shard] / float(load.sum()):.0%} of the work"


def _longest(placed: Placement, load: Loads, cores: Loads) -> float:
    return float((loads(placed, load, len(cores)) / cores).max())


def _batch(placed: Placement, load: Loads, cores: Loads) -> float:
    """Return the time of a batch, which is never shorter than its heaviest shard, wherever that shard is."""
    return max(_longest(placed, load, cores), float(load.max()))


@compiled
def _steps(
    placed: Placement,
    load: Loads,
    cost_ms: Loads,
    cores: Loads,
    work: Loads,
    limit: float,
    horizon: float,
    most: int,
) -> NDArray[np.int64]:
    """Return the moves in their order, as rows of shard and executor; changes `placed` and `work`."""
    made = np.empty((most, 2), dtype=np.int64)
    count = 0
    heaviest = load.max()
    while count < most:
        busiest = 0
        for executor in range(1, len(cores)):
            if work[executor] / cores[executor] > work[busiest] / cores[busiest]:
                busiest = executor
        longest = work[busiest] / cores[busiest]
        if longest <= max(limit, heaviest):
            break
        best, best_shard, best_executor = 0.0, -1, -1
        for shard in range(len(placed)):
            if placed[shard] != busiest or load[shard] <= 0:
                continue
            left = (work[busiest] - load[shard]) / cores[busiest]
            for executor in range(len(cores)):
                if executor == busiest:
                    continue
                shorter = longest - max(left, (work[executor] + load[shard]) / cores[executor], heaviest)
                net = horizon * shorter - cost_ms[shard]
                if shorter > 0 and net > best:
                    best, best_shard, best_executor = net, shard, executor
        if best_shard < 0:
            break
        work[busiest] -= load[best_shard]
        work[best_executor] += load[best_shard]
        placed[best_shard] = best_executor
        made[count, 0], made[count, 1] = best_shard, best_executor
        count += 1
    return made[:count].copy()
