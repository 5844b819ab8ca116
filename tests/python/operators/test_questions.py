"""The demonstration's questions on the beginning of their real data: plain Spark and Penstock give the same answers."""

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from harness import PENSTOCK, STOCK
from penstock.workloads.questions import QUESTIONS
from penstock.workloads.questions.question import TIME
from penstock.workloads.replay import cut

DATA = Path(__file__).parents[3] / "data"
PIECES = 3
ROWS = 4_000


def beginning(question):
    """Return streams of the first rows of a question's data, and the length of event time that they cover."""
    streams = {n: t.slice(0, ROWS) for n, t in question.streams(pq.read_table(DATA / question.file)).items()}
    times = [table[TIME].cast(pa.int64()) for table in streams.values()]
    # Until the end of the stream that ends first.
    span_us = min(pc.max(t).as_py() for t in times) - min(pc.min(t).as_py() for t in times)
    return streams, timedelta(microseconds=span_us)


def answers(application, engine, question, folder, checkpoint):
    session = engine.session(application)
    streams = {
        stream.name: session.readStream.schema(session.read.parquet(str(stream)).schema)
        .option("maxFilesPerTrigger", 1)
        .parquet(str(stream))
        for stream in folder.iterdir()
    }
    found = []
    query = (
        question.answer(streams)
        .writeStream.outputMode("append")
        .option("checkpointLocation", str(checkpoint))
        .options(**engine.options(0))
        .trigger(availableNow=True)
        .foreachBatch(lambda rows, _: found.extend(sorted(str(tuple(row)) for row in rows.collect())))
        .start()
    )
    try:
        assert query.awaitTermination(180)
    finally:
        query.stop()
    return found


# test_demo_runs.py covers the other questions.
@pytest.mark.parametrize("name", ["books", "taxi"])
def test_answers_equal_those_of_plain_spark(name, application, tmp_path):
    question = QUESTIONS[name]
    streams, span = beginning(question)
    cut(streams, span, PIECES, tmp_path / "streams")
    expected = answers(application, STOCK, question, tmp_path / "streams", tmp_path / "stock")
    found = answers(application, PENSTOCK, question, tmp_path / "streams", tmp_path / "penstock")
    assert sorted(found) == sorted(expected)
    assert len(found) > 100


@pytest.mark.parametrize("name", sorted(QUESTIONS))
def test_a_trace_is_ordered_by_time_with_positive_costs_and_many_keys(name):
    question = QUESTIONS[name]
    streams, _ = beginning(question)
    trace = question.trace(streams)
    assert set(trace.column_names) == {TIME, "key", "cost"}
    assert trace.num_rows > 0
    times = trace[TIME].cast(pa.int64()).to_numpy()
    assert (times[1:] >= times[:-1]).all()
    assert pc.min(trace["cost"]).as_py() > 0
    assert pc.count_distinct(trace["key"]).as_py() > 10
