"""Statistics of the batches that a benchmark has measured."""

import json

import pytest
from measured_series import batch, changes, series
from penstock.benchmarks import samples


def test_quantiles_are_interpolated():
    values = [5.0, 1.0, 4.0, 2.0, 3.0]
    assert [samples.quantile(values, q) for q in (0, 0.1, 0.5, 1)] == pytest.approx([1, 1.4, 3, 5])
    assert samples.quantile([1.0, 2.0], 0.5) == 1.5
    assert samples.summarise([7.0]) == samples.Summary(7, 7, 7, 7, 1)


def test_a_report_is_read_line_by_line():
    line = json.dumps({"case": {"side": "hdfs-2"}, "batches": [batch(10)]})
    (read,) = samples.read([line, ""])
    assert read.labels == {"side": "hdfs-2"}
    assert read.values(samples.batch_ms) == [10]


def test_the_busiest_task_is_compared_with_the_mean():
    assert samples.imbalance(batch(1, rows=[2, 4, 6])) == 1.5
    assert samples.imbalance(batch(1, rows=[0, 10])) == 2


def test_batches_without_a_value_are_left_out():
    s = series([batch(1), batch(1, moved=0.25)])
    assert s.values(samples.moved) == [0.25]


def test_batches_are_counted_up_to_the_last_unbalanced_one():
    measured = series([*changes(1, 1, 1, change=0), batch(1, rows=[9, 1]), *changes(1.5, 1, 1.2, 1.05, change=1)])
    assert samples.balanced_after(measured) == [0, 3]
    assert samples.balanced_after(series(changes(1, 1, 1.2, change=7))) == [float("inf")]
    assert samples.balanced_after(series([batch(1)])) == []
    assert measured.values(samples.changed_imbalance) == [1, 1.5]
    assert measured.values(samples.settled_imbalance) == pytest.approx([1, 1.2, 1.05])
