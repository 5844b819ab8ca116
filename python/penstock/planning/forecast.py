"""Forecasts the loads of the next batch: by the last value, an average, or the value one period ago.

The papers plan for the next interval with the statistics of the last one. Here all three forecasts are made for every
batch and compared with the measured load, and the one with the smallest recent error is used.
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
    """Forecast of the next batch.

    Parameters
    ----------
    load
        Expected load of each item; shape ``(items,)``.
    method
        Method of the forecast: ``last``, ``average`` or ``periodic``.
    period
        Period of a periodic forecast, in batches; 0 for other methods.
    error
        Error by method: mean distance between forecast and measured load, summed over items, relative to the measured
        load. Recent batches weigh more. Methods that have not made a forecast yet are absent.
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
        Number of loads: of shards, tasks or keys.
    smoothing
        Weight of the newest batch in the average, above 0 and at most 1.
    forgetting
        Weight of the newest batch in the errors.
    longest_period
        Longest period, in batches. This many batches are remembered, and the time to learn a batch is proportional to
        it.
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
        # Errors by period. Period 1 is the last value.
        self._periodic_error = np.zeros(longest_period + 1)
        self._scored = np.zeros(longest_period + 1, dtype=np.int64)

    @property
    def items(self) -> int:
        """Number of loads."""
        return len(self._average)

    def rearranged(self, source: NDArray[np.int64]) -> "Forecaster":
        """Return a copy for a different set of items.

        Parameters
        ----------
        source
            Previous number of each item, -1 for a new item, whose loads so far were 0; shape ``(items,)``.
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
            Measured load of each item, not negative; shape ``(items,)``.

        Raises
        ------
        ValueError
            The number of items differs from before.
        """
        if load.shape != self._average.shape:
            raise ValueError(f"expected {self._average.shape[0]} loads, as in earlier batches, found {load.shape[0]}")
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
        """Forecast the next batch; all loads are 0 before the first batch.

        A period is used only after it was tried for as many batches as it has. If errors are equal, the simpler method
        is used.
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
        """Return the loads of the batch that many batches before the next one."""
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
