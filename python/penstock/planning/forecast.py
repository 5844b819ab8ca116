"""Loads of the next batch from those before: the last value, an average, or what was a period ago.

The papers plan for the next interval with the statistics of the last one. Here the three forecasts are made beside each
other, each is held against what came, and the one that was nearest lately is used.
"""

from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.planning.compiled import compiled
from penstock.planning.load import Loads

LAST, AVERAGE, PERIODIC = "last", "average", "periodic"


@dataclass(frozen=True)
class Forecast:
    """What is expected of the next batch.

    Parameters
    ----------
    load
        Of each item, shape ``(items,)``.
    method
        Where it is from: ``last``, ``average`` or ``periodic``.
    period
        In batches, of a periodic forecast; else 0.
    error
        By method: mean distance of its forecasts from what came, summed over items, over the load that came. Recent
        batches weigh more. Methods that have made no forecast yet are left out.
    """

    load: Loads
    method: str
    period: int
    error: dict[str, float]


class Forecaster:
    """Learns from one batch after the other.

    Parameters
    ----------
    items
        Shards, tasks or keys: how many loads there are.
    smoothing
        Weight of the newest batch in the average, above 0 and at most 1.
    forgetting
        Weight of the newest batch in errors.
    longest_period
        In batches; as many batches are remembered, and it is as many times the work of a batch.
    """

    def __init__(
        self, items: int, *, smoothing: float = 0.3, forgetting: float = 0.1, longest_period: int = 128
    ) -> None:
        self._smoothing = smoothing
        self._forgetting = forgetting
        self._seen = 0
        self._past: Loads = np.zeros((longest_period, items))
        self._average: Loads = np.zeros(items)
        self._errors: dict[str, float] = {}
        # By period; that of one batch is the last value.
        self._periodic_error = np.zeros(longest_period + 1)
        self._scored = np.zeros(longest_period + 1, dtype=np.int64)

    @property
    def items(self) -> int:
        """How many loads there are."""
        return len(self._average)

    def rearranged(self, source: NDArray[np.int64]) -> "Forecaster":
        """Give the same for other items.

        Parameters
        ----------
        source
            Of each of them, whose past it has; -1 for one without a past, of which nothing came. Shape ``(items,)``.
        """
        other = copy(self)
        other._errors = dict(self._errors)
        other._periodic_error, other._scored = self._periodic_error.copy(), self._scored.copy()
        new = source < 0
        other._past, other._average = self._past[:, source], self._average[source]
        other._past[:, new] = 0.0
        other._average[new] = 0.0
        return other

    def observe(self, load: Loads) -> None:
        """Learn from a batch.

        Parameters
        ----------
        load
            Of each item, not negative; shape ``(items,)``.

        Raises
        ------
        ValueError
            Another number of items than before.
        """
        if load.shape != self._average.shape:
            raise ValueError(f"{load.shape[0]} loads, and {self._average.shape[0]} before")
        total = float(load.sum())
        if self._seen and total > 0:
            distance = float(np.abs(self._average - load).sum()) / total
            _forget(self._errors, AVERAGE, distance, self._forgetting)
            _score_periods(self._past, self._seen, load, total, self._forgetting, self._periodic_error, self._scored)
            self._errors[LAST] = float(self._periodic_error[1])
        self._average = load.copy() if self._seen == 0 else self._average + self._smoothing * (load - self._average)
        self._past[self._seen % len(self._past)] = load
        self._seen += 1

    def forecast(self) -> Forecast:
        """Forecast the next batch; zero before the first.

        A period counts once it was tried for as many batches as it has. Of methods that are equally near the simpler
        one is taken.
        """
        errors = dict(self._errors)
        periods = np.flatnonzero(self._scored >= np.arange(len(self._scored)))
        periods = periods[periods > 1]
        period = 0
        if len(periods):
            period = int(periods[self._periodic_error[periods].argmin()])
            errors[PERIODIC] = float(self._periodic_error[period])
        method = min(errors, key=lambda name: (errors[name], (LAST, AVERAGE, PERIODIC).index(name)), default=LAST)
        if method == PERIODIC:
            return Forecast(self._before(period).copy(), method, period, errors)
        load = self._average if method == AVERAGE else self._before(1)
        return Forecast(load.copy(), method, 0, errors)

    def _before(self, batches: int) -> Loads:
        """Give the loads that came so many batches before the next one."""
        past: Loads = self._past[(self._seen - batches) % len(self._past)]
        return past


def _forget(errors: dict[str, float], name: str, distance: float, forgetting: float) -> None:
    errors[name] = distance if name not in errors else errors[name] + forgetting * (distance - errors[name])


@compiled
def _score_periods(
    past: Loads,
    seen: int,
    load: Loads,
    total: float,
    forgetting: float,
    error: Loads,
    scored: NDArray[np.int64],
) -> None:
    for period in range(1, min(seen, len(past)) + 1):
        before = past[(seen - period) % len(past)]
        distance = 0.0
        for item in range(len(load)):
            distance += abs(before[item] - load[item])
        distance /= total
        if scored[period] == 0:
            error[period] = distance
        else:
            error[period] += forgetting * (distance - error[period])
        scored[period] += 1
