"""Decides how many cores each executor gets, by a Jackson network of M/M/k queues (Elasticutor, section 4.1)."""

import heapq
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from penstock.planning.load import Loads


@dataclass(frozen=True)
class Allocation:
    """Number of cores of each executor.

    Parameters
    ----------
    cores
        Cores of each executor, at least 1; shape ``(executors,)``.
    latency
        Mean time of a tuple in the whole network, in the unit of ``1 / rate``; infinite if the network is not stable.
    reached
        Whether the latency is within the target.
    """

    cores: NDArray[np.int64]
    latency: float
    reached: bool


def allocate(arrival: Loads, service: Loads, source: float, target: float, available: int) -> Allocation:
    """Give cores to the executors whose queues gain most from one more, until the latency is within the target.

    Starts with the fewest cores with which each queue is stable, ``floor(arrival / service) + 1``. The paper's
    ``ceil(...) + 1`` is one more than needed if the quotient is not an integer. The time in an M/M/k queue is convex in
    k, so no other allocation of the same number of cores has a smaller latency.

    If there are not enough cores for all queues to be stable, they go to the executors with the highest utilisation.

    Parameters
    ----------
    arrival
        Tuples per unit of time that reach each executor; shape ``(executors,)``.
    service
        Tuples per unit of time that one core of each executor can process, above 0; shape ``(executors,)``.
    source
        Tuples per unit of time that enter the network, above 0.
    target
        Target mean latency.
    available
        Total number of cores, at least one for each executor.
    """
    if available < len(arrival):
        raise ValueError(f"{available} cores for {len(arrival)} executors: each executor needs at least one core")
    offered = np.asarray(arrival, dtype=np.float64) / service
    cores = np.floor(offered).astype(np.int64) + 1
    if int(cores.sum()) > available:
        return Allocation(_least_utilised(offered, available), inf, False)
    queues = [Queue(float(a), int(k)) for a, k in zip(offered, cores, strict=True)]
    gains = [(-queue.gain, j) for j, queue in enumerate(queues)]
    heapq.heapify(gains)
    spare = available - int(cores.sum())
    while spare > 0 and _latency(queues, source) > target:
        _, j = heapq.heappop(gains)
        queues[j] = queues[j].with_one_more()
        heapq.heappush(gains, (-queues[j].gain, j))
        spare -= 1
    latency = _latency(queues, source)
    return Allocation(np.array([queue.cores for queue in queues], dtype=np.int64), latency, latency <= target)


class Queue:
    """An M/M/k queue.

    Parameters
    ----------
    offered
        Arrivals over the service rate of one core: the load in Erlang, below ``cores``.
    cores
        Number of servers.
    blocking
        Erlang's B for this number of cores, if already known.
    """

    def __init__(self, offered: float, cores: int, blocking: float | None = None) -> None:
        self.offered = offered
        self.cores = cores
        self._blocking = erlang_b(cores, offered) if blocking is None else blocking

    @property
    def tuples(self) -> float:
        """Mean number of tuples that wait or are served: by Little's law, arrivals times their mean time."""
        wait_probability = erlang_c(self.cores, self.offered, self._blocking)
        return self.offered + wait_probability * self.offered / (self.cores - self.offered)

    @property
    def gain(self) -> float:
        """Number of tuples by which one more core shortens the queue."""
        return self.tuples - self.with_one_more().tuples

    def with_one_more(self) -> "Queue":
        """Return the queue with one more core."""
        blocking = self.offered * self._blocking / (self.cores + 1 + self.offered * self._blocking)
        return Queue(self.offered, self.cores + 1, blocking)


def erlang_b(cores: int, offered: float) -> float:
    """Return the probability that an M/M/k/k queue is full, by a recursion that neither overflows nor cancels."""
    blocking = 1.0
    for k in range(1, cores + 1):
        blocking = offered * blocking / (k + offered * blocking)
    return blocking


def erlang_c(cores: int, offered: float, blocking: float | None = None) -> float:
    """Return the probability that a tuple must wait in a stable M/M/k queue (``offered < cores``)."""
    b = erlang_b(cores, offered) if blocking is None else blocking
    return cores * b / (cores - offered * (1.0 - b))


def _latency(queues: list[Queue], source: float) -> float:
    return sum(queue.tuples for queue in queues) / source


def _least_utilised(offered: Loads, available: int) -> NDArray[np.int64]:
    cores = np.ones(len(offered), dtype=np.int64)
    busiest = [(-float(a), j) for j, a in enumerate(offered)]
    heapq.heapify(busiest)
    for _ in range(available - len(offered)):
        _, j = heapq.heappop(busiest)
        cores[j] += 1
        heapq.heappush(busiest, (-float(offered[j]) / int(cores[j]), j))
    return cores
