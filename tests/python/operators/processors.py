"""User code of the stateful operators, in PySpark's two forms: rows and pandas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMA = "k long, c long, w string"


def count_until_timeout(key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
    """applyInPandasWithState: counts a key's rows until an event-time timeout that differs by key."""
    if state.hasTimedOut:
        count, _ = state.get
        state.remove()
        yield pd.DataFrame({"k": [key[0]], "c": [count], "w": ["timeout"]})
        return
    count, latest = state.get if state.exists else (0, 0)
    for frame in frames:
        count += len(frame)
        latest = max(latest, int(frame["t"].max()))
    state.update((int(count), int(latest)))
    expiry = latest * 1000 + 4000 + int(key[0]) % 3 * 1000
    state.setTimeoutTimestamp(int(max(expiry, state.getCurrentWatermarkMs() + 1)))
    yield pd.DataFrame({"k": [key[0]], "c": [count], "w": ["rows"]})


class EveryVariable(StatefulProcessor):
    """Uses value, list and map state and returns all of it, so that one wrong entry changes the answer."""

    time_to_live_ms: int | None = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.count = handle.getValueState("count", "c long", self.time_to_live_ms)
        self.values = handle.getListState("values", "v long", self.time_to_live_ms)
        self.counts = handle.getMapState("counts", "r long", "c long", self.time_to_live_ms)

    def remember(self, values: list[int]) -> int:
        before = self.count.get()[0] if self.count.exists() else 0
        total = before + len(values)
        for value in sorted(values):
            self.values.appendValue((value,))
            self.counts.updateValue((value % 5,), (total,))
        if total % 11 == 0:
            self.values.clear()
        if total % 7 == 0:
            self.counts.removeKey((3,))
        self.count.update((total,))
        return int(total)

    def show(self) -> str:
        values = sorted(row[0] for row in self.values.get())
        counts = sorted((key[0], value[0]) for key, value in self.counts.iterator())
        return f"values={values} counts={counts} timers={sorted(self.handle.listTimers())}"

    def close(self) -> None:
        pass


class EventTimers(EveryVariable):
    """Processes rows, and registers a timer after the key's newest event."""

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        found = list(rows)
        count = self.remember([row.v for row in found])
        self.handle.registerTimer(max(row.t for row in found) * 1000 + 7000 + int(key[0]) % 4 * 1000)
        yield Row(k=key[0], c=count, w=self.show())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: N802, N803
        yield Row(k=key[0], c=-1, w=f"expired {expiredTimerInfo.getExpiryTimeInMs()} {self.show()}")


class PandasEventTimers(EveryVariable):
    """Does the same as EventTimers, with pandas."""

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        found = pd.concat(list(rows))
        count = self.remember([int(v) for v in found["v"]])
        self.handle.registerTimer(int(found["t"].max()) * 1000 + 7000 + int(key[0]) % 4 * 1000)
        yield pd.DataFrame({"k": [key[0]], "c": [count], "w": [self.show()]})

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        shown = f"expired {expiredTimerInfo.getExpiryTimeInMs()} {self.show()}"
        yield pd.DataFrame({"k": [key[0]], "c": [-1], "w": [shown]})


class ProcessingTimers(EveryVariable):
    """Registers a timer that expires before the next batch. The time to live is longer than the test."""

    time_to_live_ms = 3_600_000

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        count = self.remember([row.v for row in rows])
        self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + 1)
        yield Row(k=key[0], c=count, w=f"{len(list(self.handle.listTimers()))} timers")

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: N802, N803
        yield Row(k=key[0], c=self.count.get()[0], w="expired")


class CountFromInitialState(StatefulProcessor):
    """Counts a key's rows, starting from the number in the initial state."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.count = handle.getValueState("count", "c long")

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:  # noqa: N802, N803
        self.count.update((initialState.c,))

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        total = (self.count.get()[0] if self.count.exists() else 0) + len(list(rows))
        self.count.update((total,))
        yield Row(k=key[0], c=total, w="")

    def close(self) -> None:
        pass
