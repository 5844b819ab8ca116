"""How many executors a query needs so that rows are answered in time.

Elasticutor (section 4.1) gives each operator as many cores as its M/M/k queue needs for the latency that is wanted.
Rows of a micro-batch come together: a row waits for its batch to begin, and then for all of the batch. With work for
``a`` cores at all times (Erlang: arrivals over the service rate of a core) and what a batch takes besides its work,
batches that follow each other at once take ``rest / (1 - a / k)`` on k cores: the pole is the queue's own. Batches that
are started by the clock take ``rest + a * interval / k``, as long as that is less than the interval. To that comes what
a row waits for a core, Erlang's C as in the paper.
"""

from dataclasses import dataclass
from math import inf

from penstock.planning.allocation import erlang_c

AT_ONCE = 1.1
"""Batches follow each other at once where the time between two begins is no more than so many times what one takes."""
NEARLY = 1.05
"""Where the target is out of reach, so many times the best that can be had is good enough."""
KEEP = 0.7
"""Of what was known when another batch has come."""


@dataclass(frozen=True)
class Load:
    """What a query's batches take, learnt from batch to batch.

    Parameters
    ----------
    offered
        Cores that its work keeps busy.
    rest_ms
        What a batch takes besides.
    row_ms
        Work of a row.
    interval_ms
        Between the starts of two batches; 0 where they follow each other at once.
    """

    offered: float
    rest_ms: float
    row_ms: float
    interval_ms: float


@dataclass(frozen=True)
class Batch:
    """A batch, as it was.

    Parameters
    ----------
    rows
        That came in.
    batch_ms
        What it took.
    interval_ms
        From the start of the batch before to its own, above 0.
    work_ms
        Time of its tasks, over all of them.
    cores
        Tasks that could run at once, at least 1.
    """

    rows: int
    batch_ms: float
    interval_ms: float
    work_ms: float
    cores: int


@dataclass(frozen=True)
class Bounds:
    """What may be asked for.

    Parameters
    ----------
    target_ms
        Mean latency of a row that is wanted, above 0.
    cores
        Of an executor, at least 1.
    least, most
        Executors.
    margin
        Share of the target that fewer executors must keep to.
    window
        Batches in a row in which fewer would have done, before there are fewer.
    """

    target_ms: float
    cores: int
    least: int
    most: int
    margin: float = 0.8
    window: int = 10


@dataclass(frozen=True)
class Scale:
    """A number of executors that does not flutter.

    Parameters
    ----------
    executors
        That are wanted.
    reason
        Why so many.
    load
        As learnt; None before the first batch.
    fewer
        The numbers that would have done in the last batches, oldest first, as long as each was smaller.
    """

    executors: int
    reason: str
    load: Load | None = None
    fewer: tuple[int, ...] = ()


def learn(known: Load | None, batch: Batch) -> Load:
    """Learn from a batch. More work is believed at once, less of it little by little."""
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
    """Predict the mean time from a row's arrival to the end of its batch; infinite where the work is too much.

    Parameters
    ----------
    cores
        Their number, at least 1.
    """
    if load.offered >= cores:
        return inf
    by_clock = load.rest_ms + load.offered * load.interval_ms / cores
    if 0 < by_clock <= load.interval_ms:
        batch, interval = by_clock, load.interval_ms
    else:
        batch = interval = load.rest_ms / (1 - load.offered / cores)
    waits = erlang_c(cores, load.offered) * load.row_ms / (cores - load.offered) if load.offered else 0.0
    return interval / 2 + batch + waits


def follow(scale: Scale, batch: Batch, bounds: Bounds) -> Scale:
    """Decide on the executors of the next batches.

    More at once, as few as reach the target, or come near to what can be had where that is more. Fewer only when fewer
    would have done for a window of batches, and then as many as the batch that needed most.

    Parameters
    ----------
    scale
        What was decided before; its executors are those that there are.
    batch
        The newest.
    bounds
        See there.
    """
    load = learn(scale.load, batch)
    now = min(max(scale.executors, bounds.least), bounds.most)

    def ms(executors: int) -> float:
        return latency_ms(load, executors * bounds.cores)

    best = ms(bounds.most)
    if best == inf:
        return Scale(bounds.most, f"the target is out of reach: {_words(inf)}, with {bounds.most} executors too", load)
    reachable = best <= bounds.target_ms
    goal = bounds.target_ms if reachable else NEARLY * best
    missed = "" if reachable else "the target is out of reach: "
    if ms(now) > goal:
        to = next(n for n in range(now + 1, bounds.most + 1) if n == bounds.most or ms(n) <= goal)
        return Scale(to, f"{missed}{_words(ms(now))} with {now} executors, {_words(ms(to))} with {to}", load)
    kept = bounds.margin * goal if reachable else goal
    enough = next(n for n in range(bounds.least, now + 1) if n == now or ms(n) <= kept)
    if enough == now:
        return Scale(now, f"{missed}{_words(ms(now))} is expected", load)
    fewer = (*scale.fewer, enough)[-bounds.window :]
    if len(fewer) < bounds.window:
        return Scale(now, f"{missed}{enough} executors would do, within stabilisation window", load, fewer)
    to = max(fewer)
    return Scale(to, f"{missed}{_words(ms(to))} is expected with {to} executors", load)


def _words(ms: float) -> str:
    return "more work than cores" if ms == inf else f"{ms:.0f} ms"
