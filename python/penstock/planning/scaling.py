"""Decides how many executors a query needs for a target latency of rows.

Elasticutor (section 4.1) gives each operator as many cores as its M/M/k queue needs for the target latency. Rows of a
micro-batch arrive together: a row waits for its batch to start, and then for the whole batch. Let ``a`` be the offered
work in cores (Erlang: arrivals over the service rate of a core), and ``rest`` the time of a batch in addition to its
work. Batches that follow each other immediately take ``rest / (1 - a / k)`` on k cores, with the same pole as the
queue. Batches that are started by a trigger interval take ``rest + a * interval / k``, as long as that is less than the
interval. The time that a row waits for a core is added, by Erlang's C as in the paper.
"""

from dataclasses import dataclass
from math import inf

from penstock.planning.allocation import erlang_c

AT_ONCE = 1.1
"""Batches count as following each other immediately if their interval is at most this many times their duration."""
NEARLY = 1.05
"""If the target is out of reach, this many times the best possible latency is accepted."""
KEEP = 0.7
"""Weight of earlier batches when a new batch is learnt."""


@dataclass(frozen=True)
class Load:
    """What a query's batches take, learnt from batch to batch.

    Parameters
    ----------
    offered
        Number of cores that the query's work keeps busy.
    rest_ms
        Time of a batch in addition to its work.
    row_ms
        Work of a row.
    interval_ms
        Time between the starts of two batches; 0 if they follow each other immediately.
    """

    offered: float
    rest_ms: float
    row_ms: float
    interval_ms: float


@dataclass(frozen=True)
class Batch:
    """Measurements of a batch.

    Parameters
    ----------
    rows
        Number of input rows.
    batch_ms
        Duration of the batch.
    interval_ms
        Time from the start of the previous batch to the start of this one, above 0.
    work_ms
        Sum of the times of all tasks.
    cores
        Number of tasks that could run at once, at least 1.
    """

    rows: int
    batch_ms: float
    interval_ms: float
    work_ms: float
    cores: int


@dataclass(frozen=True)
class Bounds:
    """Target and limits of a decision.

    Parameters
    ----------
    target_ms
        Target mean latency of a row, above 0.
    cores
        Cores of an executor, at least 1.
    least, most
        Smallest and largest number of executors.
    margin
        Fraction of the target that fewer executors must keep to.
    window
        Number of consecutive batches that must need fewer executors before there are fewer.
    """

    target_ms: float
    cores: int
    least: int
    most: int
    margin: float = 0.8
    window: int = 10


@dataclass(frozen=True)
class Scale:
    """A number of executors that does not follow short fluctuations.

    Parameters
    ----------
    executors
        Number of executors that the query should have.
    reason
        Why this number was chosen.
    load
        What was learnt from batches; None before the first batch.
    fewer
        Numbers of executors that would have been enough in the last batches, oldest first, if each was smaller than the
        current number.
    """

    executors: int
    reason: str
    load: Load | None = None
    fewer: tuple[int, ...] = ()


def learn(known: Load | None, batch: Batch) -> Load:
    """Learn from a batch: an increase of the work applies at once, a decrease gradually."""
    offered = batch.work_ms / batch.interval_ms
    rest_ms = max(0.0, batch.batch_ms - batch.work_ms / batch.cores)
    row_ms = batch.work_ms / max(1, batch.rows)
    interval_ms = batch.interval_ms if batch.interval_ms > AT_ONCE * batch.batch_ms else 0.0
    if known is None:
        return Load(offered, rest_ms, row_ms, interval_ms)
    return Load(
        max(offered, _blend(known.offered, offered)),
        _blend(known.rest_ms, rest_ms),
        _blend(known.row_ms, row_ms),
        interval_ms,
    )


def _blend(known: float, new: float) -> float:
    return KEEP * known + (1 - KEEP) * new


def latency_ms(load: Load, cores: int) -> float:
    """Predict the mean time from a row's arrival to the end of its batch; infinite if there is too much work.

    Parameters
    ----------
    load
        What was learnt from batches.
    cores
        Number of cores, at least 1.
    """
    if load.offered >= cores:
        return inf
    triggered_ms = load.rest_ms + load.offered * load.interval_ms / cores
    if 0 < triggered_ms <= load.interval_ms:
        batch_ms, interval_ms = triggered_ms, load.interval_ms
    else:
        batch_ms = interval_ms = load.rest_ms / (1 - load.offered / cores)
    wait_ms = erlang_c(cores, load.offered) * load.row_ms / (cores - load.offered) if load.offered else 0.0
    return interval_ms / 2 + batch_ms + wait_ms


def follow(scale: Scale, batch: Batch, bounds: Bounds) -> Scale:
    """Decide the number of executors of the next batches.

    It increases at once, to the smallest number that reaches the target or, if the target is out of reach, comes close
    to the best possible latency. It decreases only if fewer executors were enough in each batch of a window, and then
    to the largest number that one of these batches needed.

    Parameters
    ----------
    scale
        The previous decision, with the number of executors that currently exist.
    batch
        The newest batch.
    bounds
        Target and limits.
    """
    load = learn(scale.load, batch)
    now = min(max(scale.executors, bounds.least), bounds.most)

    def ms(executors: int) -> float:
        return latency_ms(load, executors * bounds.cores)

    best = ms(bounds.most)
    if best == inf:
        return Scale(bounds.most, f"the target is out of reach: {_words(inf)}, even with {bounds.most} executors", load)
    reachable = best <= bounds.target_ms
    goal = bounds.target_ms if reachable else NEARLY * best
    prefix = "" if reachable else "the target is out of reach: "
    if ms(now) > goal:
        to = next(n for n in range(now + 1, bounds.most + 1) if n == bounds.most or ms(n) <= goal)
        return Scale(to, f"{prefix}{_words(ms(now))} with {now} executors, {_words(ms(to))} with {to}", load)
    kept = bounds.margin * goal if reachable else goal
    enough = next(n for n in range(bounds.least, now + 1) if n == now or ms(n) <= kept)
    if enough == now:
        return Scale(now, f"{prefix}{_words(ms(now))} is expected", load)
    fewer = (*scale.fewer, enough)[-bounds.window :]
    if len(fewer) < bounds.window:
        return Scale(now, f"{prefix}{enough} executors are enough, within stabilisation window", load, fewer)
    to = max(fewer)
    return Scale(to, f"{prefix}{_words(ms(to))} is expected with {to} executors", load)


def _words(ms: float) -> str:
    return "more work than cores" if ms == inf else f"{ms:.0f} ms"
