"""Measure planners in this process, for `penstock bench plan`, `cores` and `refine`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.benchmarks.samples import Series
from penstock.benchmarks.timing import timed
from penstock.planning import compact, cores, mixed, refinement
from penstock.planning.key_routing import KeyStatistics
from penstock.workloads.key_costs import fluctuate, zipf

INSTANCES = 15
SKEW = 0.85
TABLE = 3000
DEGREE = 3
NODES = (8, 16, 32)
CORES_OF_A_NODE = 8
SHARDS, TASKS = 8192, 256


def plan(rounds: int, warm_up: int, keys: int | None) -> list[Series]:
    """Measure Mixed after one fluctuation, with keys and with records of merged keys.

    Each round starts from a planned placement and has another fluctuation. Only the planning is timed.
    """
    number = keys or 1_000_000
    series = []
    for theta in (0.08, 0.02):
        intervals = [_fluctuated(number, theta, seed) for seed in range(rounds + warm_up)]

        def exact(interval: KeyStatistics, theta: float = theta) -> dict[str, float]:
            ms, found = timed(lambda: mixed.mixed(interval, theta, TABLE))
            return {"planMs": ms, "imbalance": found.load.max() / found.load.mean()}

        def merged(interval: KeyStatistics, theta: float = theta) -> dict[str, float]:
            records, record_of = compact.merge(interval, DEGREE, 1 / 8, 1 / 8)
            ms, found = timed(lambda: compact.mixed_compact(records, theta, TABLE))
            real = found.expanded(interval, record_of).load
            error = float(np.abs(found.load - real).max() / real.mean())
            return {"planMs": ms, "imbalance": real.max() / real.mean(), "error": error, "records": len(records.cost)}

        measures: list[tuple[str, Callable[[KeyStatistics], dict[str, float]]]] = [
            ("mixed", exact),
            ("compact", merged),
        ]
        for name, measure in measures:
            batches = [measure(interval) for interval in intervals][warm_up:]
            series.append(Series({"call": f"{name}, theta {theta}", "keys": str(number)}, batches))
    return series


def assign(rounds: int, warm_up: int) -> list[Series]:
    """Measure the assignment of cores, and compare its cost with that of the published algorithm."""
    series = []
    for nodes in NODES:
        batches = []
        for seed in range(rounds + warm_up):
            current, capacity, demand = _demand(nodes, seed)
            ms, ours = timed(lambda c=current, n=capacity, d=demand: cores.assign(c, n, d))  # type: ignore[misc]
            published = cores.assign_as_published(current, capacity, demand, ours.phi)
            batches.append({"planMs": ms, "cost": _over(ours.migrated_bytes, published.migrated_bytes)})
        series.append(Series({"call": f"{nodes} nodes"}, batches[warm_up:]))
    return series


def refine(rounds: int, warm_up: int) -> list[Series]:
    """Measure the refinement of a placement of shards on tasks with random loads."""
    batches = []
    for seed in range(rounds + warm_up):
        random = np.random.default_rng(seed)
        load = random.permutation(np.arange(1, SHARDS + 1, dtype=np.float64) ** -0.35)
        task = random.integers(0, TASKS, SHARDS).astype(np.int32)
        ms, found = timed(lambda t=task, w=load: refinement.refine(t, w, TASKS))  # type: ignore[misc]
        batches.append({"planMs": ms, "imbalance": found.delta_after, "moves": len(found.moves)})
    return [Series({"call": f"{SHARDS} shards, {TASKS} tasks"}, batches[warm_up:])]


def _fluctuated(keys: int, theta: float, seed: int) -> KeyStatistics:
    costs = zipf(keys, SKEW, INSTANCES, seed)
    placed = mixed.mixed(costs.statistics(), theta, TABLE).destination
    return fluctuate(costs, placed, 1.0, seed).statistics(placed)


def _demand(nodes: int, seed: int) -> tuple[Any, Any, cores.Demand]:
    """Draw random assigned and needed cores for as many executors as nodes."""
    random = np.random.default_rng(seed)
    total, capacity = nodes * CORES_OF_A_NODE, np.full(nodes, CORES_OF_A_NODE)

    def shares() -> Any:
        return random.multinomial(total - 2 * nodes, np.full(nodes, 1 / nodes)) + 1

    owner = np.full(total, nodes)
    assigned = shares()
    owner[: assigned.sum()] = np.repeat(np.arange(nodes), assigned)
    random.shuffle(owner)
    current = np.zeros((nodes, nodes + 1), dtype=np.int64)
    np.add.at(current, (np.repeat(np.arange(nodes), CORES_OF_A_NODE), owner), 1)
    needed = shares()
    state, rate = random.uniform(1, 1000, nodes) * 2**20, random.uniform(0, 2, nodes) * cores.INTENSIVE_BYTES_PER_S
    return current[:, :nodes].copy(), capacity, cores.Demand(needed, state, rate * needed, np.arange(nodes))


def _over(ours: float, theirs: float) -> float:
    return ours / theirs if theirs > 0 else 1.0
