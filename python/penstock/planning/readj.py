"""Readj (Gedik, VLDB Journal 2014), the baseline of Fang et al.: moves and swaps of the heaviest keys, best first."""

from collections.abc import Sequence

import numpy as np

from penstock.planning.compiled import compiled
from penstock.planning.key_routing import KeyPlan, KeyStatistics
from penstock.planning.load import Loads, Placement, imbalance, loads
from penstock.planning.mixed import limit_of
from penstock.planning.sorting import Keys

NOTHING = -1
SIGMAS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)


def readj(keys: KeyStatistics, theta: float, sigma: float) -> KeyPlan:
    """Move one tracked key, or swap two, as long as that lowers the larger of the two loads.

    Steps that lower it most per unit of moved state come first. Before that, table entries of keys that are no longer
    tracked are given up. Every step looks at all pairs of tracked keys, which is slow if sigma is small.

    Parameters
    ----------
    keys
        Statistics of the last interval.
    theta
        Largest load above the mean, over the mean, that is accepted.
    sigma
        Keys that cost at least this fraction of the mean load are tracked.
    """
    destination = keys.current.copy()
    tracked = keys.cost >= sigma * float(keys.load.mean())
    untracked = np.flatnonzero((destination != keys.default) & ~tracked)
    destination[untracked] = keys.default[untracked]
    load = loads(destination, keys.cost, keys.destinations)
    _exchange(np.flatnonzero(tracked), destination, keys.cost, keys.memory, load, limit_of(load, theta))
    return KeyPlan(destination, loads(destination, keys.cost, keys.destinations), len(untracked), 0)


def readj_tuned(keys: KeyStatistics, theta: float, sigmas: Sequence[float] = SIGMAS) -> KeyPlan:
    """Try several sigmas, the largest first; return the first balanced plan, or else the most balanced one."""
    plans = []
    for sigma in sorted(sigmas, reverse=True):
        plans.append(readj(keys, theta, sigma))
        if imbalance(plans[-1].load) <= 1.0 + theta:
            return plans[-1]
    return min(plans, key=lambda plan: imbalance(plan.load))


@compiled
def _exchange(tracked: Keys, destination: Placement, cost: Loads, memory: Loads, load: Loads, limit: float) -> None:
    while load.max() > limit:
        best, best_one, best_two, best_to = 0.0, NOTHING, NOTHING, NOTHING
        for one in tracked:
            here = destination[one]
            for there in range(len(load)):
                gain = _gain(load[here], load[there], cost[one], 0.0) / memory[one]
                if there != here and gain > best:
                    best, best_one, best_two, best_to = gain, one, NOTHING, there
            for two in tracked:
                there = destination[two]
                if there == here or cost[two] >= cost[one]:
                    continue
                gain = _gain(load[here], load[there], cost[one], cost[two]) / (memory[one] + memory[two])
                if gain > best:
                    best, best_one, best_two, best_to = gain, one, two, there
        if best_one == NOTHING:
            return
        here, moved = destination[best_one], cost[best_one]
        destination[best_one] = best_to
        if best_two != NOTHING:
            destination[best_two] = here
            moved -= cost[best_two]
        load[here] -= moved
        load[best_to] += moved


@compiled
def _gain(here: float, there: float, goes: float, comes: float) -> float:
    """Return how much a move or swap lowers the larger of two loads; 0 if only by rounding."""
    moved = goes - comes
    larger = max(here, there)
    gain = larger - max(here - moved, there + moved)
    return gain if gain > 1e-12 * larger else 0.0
