"""PySpark's stateful operators give the same rows with Penstock, with varying numbers of tasks, as with plain Spark."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from harness import PENSTOCK, SEED, STOCK, Answer, run
from processors import (
    SCHEMA,
    CountFromInitialState,
    EventTimers,
    PandasEventTimers,
    ProcessingTimers,
    count_until_timeout,
)
from pyspark.sql.streaming.state import GroupStateTimeout

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


def apply_in_pandas_with_state(_: SparkSession, rows: DataFrame) -> DataFrame:
    state, timeout = "count long, latest long", GroupStateTimeout.EventTimeTimeout
    return rows.groupBy("k").applyInPandasWithState(count_until_timeout, SCHEMA, state, "update", timeout)


def transform_with_state(_: SparkSession, rows: DataFrame) -> DataFrame:
    return rows.groupBy("k").transformWithState(EventTimers(), SCHEMA, "Update", "EventTime")


def transform_with_state_in_pandas(_: SparkSession, rows: DataFrame) -> DataFrame:
    return rows.groupBy("k").transformWithStateInPandas(PandasEventTimers(), SCHEMA, "Update", "EventTime")


def processing_time_timers(_: SparkSession, rows: DataFrame) -> DataFrame:
    return rows.groupBy("k").transformWithState(ProcessingTimers(), SCHEMA, "Update", "ProcessingTime")


def initial_state(session: SparkSession, rows: DataFrame) -> DataFrame:
    initial = session.createDataFrame([(k, k * 100) for k in range(40)], "k long, c long").groupBy("k")
    processor = CountFromInitialState()
    return rows.groupBy("k").transformWithState(processor, SCHEMA, "Update", "None", initialState=initial)


@dataclass(frozen=True)
class Case:
    """A query, and a text that its answer must contain, which proves that the input reached the tested feature."""

    query: Callable[[SparkSession, DataFrame], DataFrame]
    evidence: str
    conf: dict[str, str] = field(default_factory=dict)


CASES = [
    Case(apply_in_pandas_with_state, "timeout"),
    Case(transform_with_state, "expired"),
    Case(transform_with_state_in_pandas, "expired"),
    # Otherwise batches without data would run for ever, because processing time always justifies another one.
    Case(processing_time_timers, "expired", {"spark.sql.streaming.noDataMicroBatches.enabled": "false"}),
    Case(initial_state, "3"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.query.__name__)
def test_every_batch_has_the_same_rows_as_with_plain_spark(
    case: Case, application: SparkSession, tmp_path: Path
) -> None:
    expected = run(application, STOCK, tmp_path / "stock", case.query, case.conf)
    found = run(application, PENSTOCK, tmp_path / "penstock", case.query, case.conf)
    assert any(case.evidence in row for rows in expected.batches.values() for row in rows)
    assert found.batches == expected.batches, f"PENSTOCK_TEST_SEED={SEED}"
    assert len(expected.batches) >= 6
    assert len(set(found.store_instances)) > 1, "the number of tasks never changed"
    check_reports(expected, found)


def check_reports(expected: Answer, found: Answer) -> None:
    """Compare the reports that a PySpark user reads with Spark's figures for the same batches."""
    for report in expected.reports:
        assert (report.mode, report.regions) == ("off", [])
        assert STOCK.provider in report.reason
    for report, instances in zip(found.reports, found.store_instances, strict=True):
        assert (report.mode, report.shards, report.reason) == ("on", PENSTOCK.partitions, None)
        (region,) = report.regions
        assert region["routed"]
        assert region["tasks"] == instances
        assert region["imbalance"] >= 1
