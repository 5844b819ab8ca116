"""Messages that a driver sends to the planner sidecar."""

import pyarrow as pa
from penstock.sidecars.planner.frame import Frame, Kind

TOKEN = "0123456789abcdef" * 4
RUN = "12345678-1234-1234-1234-123456789abc"


def table(**columns):
    made = pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, made.schema) as writer:
        writer.write_table(made)
    return sink.getvalue().to_pybytes()


def measured(*, shards=4, rows=None, busy_ns=None, body=None, task=None, ran_on=None, home=None, **head):
    values = {
        "run": RUN,
        "region": 0,
        "batch": 7,
        "shards": shards,
        "tasks": 2,
        "most": 4,
        "stage_ms": 110.0,
        "tasks_ms": [100.0, 80.0],
        "plans_tasks": True,
        "attributes": False,
    }
    values.update(head)
    columns = {"task": task or [s % 2 for s in range(shards)]} if "placing" in head else {}
    if head.get("attributes"):
        columns["ran_on"] = ran_on or [s % 2 for s in range(shards)]
    if "homing" in head:
        columns["home"] = home or [0] * shards
    if head.keys() & {"placing", "pinning", "homing"}:
        columns["state_bytes"] = [100] * shards
    sent = table(rows=rows or [10] * shards, busy_ns=busy_ns or [1000] * shards, **columns) if body is None else body
    return Frame(Kind.MEASURED, 5, {k: v for k, v in values.items() if v is not None}, sent)


PLACING = {"policy": "refine", "theta": 1.1, "tasks": 2}
PINNING = {
    "theta": 1.1,
    "most": 4,
    "tasks": 2,
    "base_shards": 4,
    "pin_slots": [],
    "hashes": [],
    "rows": [],
    "busy_ns": [],
}
HOMING = {"theta": 1.1, "changed": True, "bytes_per_ms": 1000.0, "move_ms": 0.1, "cores": [1, 1]}
HOMING |= {"executors": ["a", "b"], "tasks": [1, 1]}
DEMAND = {
    "run": RUN,
    "batch": 7,
    "executors": 2,
    "rows": 1000,
    "batch_ms": 4000.0,
    "interval_ms": 4000.0,
    "work_ms": 7800.0,
    "tasks": 2,
    "target_ms": 1000.0,
    "cores": 1,
    "least": 1,
    "most": 8,
}


def demand(**head):
    return Frame(Kind.DEMAND, 6, {k: v for k, v in (DEMAND | head).items() if v is not None})
