"""Spark's event logs as traces for `penstock simulate`."""

import json

import pyarrow as pa
import pytest
from penstock import cli
from penstock.api.errors import PenstockError
from penstock.workloads.event_log import BATCH, QUERY, is_event_log, read

TIMES_MS = {0: [10, 20, 30, 40], 1: [40, 10, 10, 20]}


def job(stages, batch, query="q"):
    return {"Event": "SparkListenerJobStart", "Stage IDs": stages, "Properties": {QUERY: query, BATCH: str(batch)}}


def task(stage, partition, run_ms, rows, reason="Success"):
    read_rows = {"Total Records Read": rows}
    return {
        "Event": "SparkListenerTaskEnd",
        "Stage ID": stage,
        "Task End Reason": {"Reason": reason},
        "Task Info": {"Index": partition, "Partition ID": partition},
        "Task Metrics": {"Executor Run Time": run_ms, "Shuffle Read Metrics": read_rows},
    }


def events(query="q", first_stage=0):
    """Return the events of two batches, each with a map stage and a stage of four state partitions."""
    made = [{"Event": "SparkListenerLogStart", "Spark Version": "4.2.0"}]
    for batch, times in TIMES_MS.items():
        scan, state = first_stage + 2 * batch, first_stage + 2 * batch + 1
        made += [job([scan, state], batch, query), task(scan, 0, 500, 0)]
        made += [task(state, partition, 1, 1000, "ExceptionFailure") for partition in range(2)]
        made += [task(state, partition, ms, 5 * (partition + 1)) for partition, ms in enumerate(times)]
    return made


def progress(batch, partitions, query="q", metrics=("penstockShardsLoaded",)):
    """Return the progress event of a batch, with the fields that are read."""
    operator = {"numShufflePartitions": partitions, "customMetrics": dict.fromkeys(metrics, 0)}
    durations = {"addBatch": 5, "triggerExecution": 7}
    fields = {"id": query, "batchId": batch, "durationMs": durations, "stateOperators": [operator]}
    return {"Event": "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent", "progress": fields}


def environment(**conf):
    properties = [["spark.plugins", "a.b.C,io.penstock.PenstockPlugin"], *([f"spark.{k}", v] for k, v in conf.items())]
    return {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": properties}


def written(path, made, compression=None):
    path.parent.mkdir(exist_ok=True)
    with pa.output_stream(str(path), compression=compression) as stream:
        stream.write("".join(json.dumps(event) + "\n" for event in made).encode())
    return path


def check(trace):
    first, second = trace.batches(1.0)
    assert first.key.tolist() == second.key.tolist() == [0, 1, 2, 3]
    assert (first.cost.tolist(), second.cost.tolist()) == (TIMES_MS[0], TIMES_MS[1])
    assert first.rows.tolist() == [5, 10, 15, 20]
    assert second.memory.tolist() == [10, 20, 30, 40]
    assert trace.hashes.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("name", "compression"), [("app-1", None), ("app-1.zstd", "zstd"), ("app-1.inprogress", None)])
def test_a_single_file_is_read(name, compression, tmp_path):
    path = written(tmp_path / name, events(), compression)
    assert is_event_log(path)
    check(read(path))


def test_rolled_files_are_read_in_order(tmp_path):
    folder, made = tmp_path / "eventlog_v2_app-1", events()
    (tmp_path / "eventlog_v2_app-1").mkdir()
    (folder / "appstatus_app-1").write_text("")
    for number, part in enumerate([made[:1], made[1:9], made[9:]], start=9):
        written(folder / f"events_{number}_app-1.zstd", part, "zstd")
    assert is_event_log(folder)
    check(read(folder))


def test_an_incomplete_last_line_is_ignored(tmp_path):
    path = written(tmp_path / "app-1.inprogress", events())
    path.write_text(path.read_text() + '{"Event":"SparkListenerTa')
    check(read(path))


def test_one_of_several_queries_must_be_chosen(tmp_path):
    path = written(tmp_path / "log", events() + events("other", 100))
    with pytest.raises(PenstockError, match="several queries, other, q; choose one with --query"):
        read(path)
    check(read(path, "other"))
    with pytest.raises(PenstockError, match=r"no query third \(--query\); it has other, q"):
        read(path, "third")


@pytest.mark.parametrize(
    "more",
    [
        [environment(), progress(0, 64), progress(1, 64)],
        [progress(1, 64)],
        [environment()],
        [environment(**{"penstock.mode": "on"}), progress(0, 4, "another")],
    ],
)
def test_a_run_whose_tasks_ran_several_partitions_is_refused(more, tmp_path):
    """Its log does not have the time of each partition."""
    path = written(tmp_path / "log", events() + more)
    with pytest.raises(PenstockError, match="under Penstock, whose tasks ran several state partitions each") as caught:
        read(path)
    assert caught.value.error_class == "PENSTOCK_BAD_TRACE"
    assert "spark.penstock.mode=observe" in caught.value.detail


@pytest.mark.parametrize(
    "more",
    [
        [environment(**{"penstock.mode": "observe"})],
        [environment(**{"penstock.mode": "off"})],
        # Each task of this query ran one partition. Other queries do not matter.
        [environment(), progress(0, 4), progress(1, 4), progress(0, 64, "another")],
        [environment(), progress(0, 64, metrics=["rocksdbGetCount"])],
    ],
)
def test_a_run_with_a_task_for_each_partition_is_read(more, tmp_path):
    check(read(written(tmp_path / "log", events() + more)))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("app-1", '{"Event":"SparkListenerLogStart"}\n', "no task of a streaming query"),
        ("app-1", '{"Event":"A"}\n{"Event":\n{"Event":"B"}\n', "line 2 of app-1 is not an event"),
        ("app-1", '{"Event":"A"}\n[1]\n', "line 2 of app-1 is not an event"),
        ("app-1.lz4", "x", "spark.eventLog.compression.codec=zstd"),
        ("app-1.zstd", "x", "app-1.zstd cannot be read"),
    ],
)
def test_a_file_that_is_not_an_event_log_is_refused(name, text, message, tmp_path):
    path = tmp_path / name
    path.write_text(text)
    assert is_event_log(path)
    with pytest.raises(PenstockError, match=message) as caught:
        read(path)
    assert caught.value.error_class == "PENSTOCK_BAD_TRACE"


def test_a_folder_that_is_not_an_event_log_is_refused(tmp_path):
    with pytest.raises(PenstockError, match="name the folder eventlog_v2_"):
        read(tmp_path)


def test_the_command_places_partitions(tmp_path, capsys):
    path, result, picture = written(tmp_path / "log", events()), tmp_path / "result.json", tmp_path / "p.png"
    options = ["--tasks", "2", "--policy", "static,ideal", "--json", str(result), "--png", str(picture)]
    assert cli.main(["simulate", str(path), *options]) == 0
    assert "8 tasks logged, 4 partitions, 2 batches, 2 tasks" in capsys.readouterr().out
    policies = json.loads(result.read_text())["policies"]
    # Partitions 0 and 2 on one task, 1 and 3 on the other.
    assert policies["static"]["longest"] == [60, 50]
    assert policies["ideal"]["longest"] == [50, 40]
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--interval", "5", "--interval is 5.0, but an event log does not have this option"),
        ("--key", "k", "--key is k, but an event log does not have this option"),
    ],
)
def test_options_of_traces_are_refused_for_event_logs(option, value, message, tmp_path, capsys):
    path = written(tmp_path / "log", events())
    assert cli.main(["simulate", str(path), option, value]) == 2
    assert message in capsys.readouterr().err


def test_options_of_event_logs_are_refused_for_traces(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("time,key\n1,2\n")
    assert cli.main(["simulate", str(path), "--query", "q"]) == 2
    assert "--query is q, but a trace does not have this option" in capsys.readouterr().err
