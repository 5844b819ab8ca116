"""What the planner sidecar learns of the load of shards, and for how many regions it remembers it."""

from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from driver_end import hello
from penstock.sidecars.planner.measured import Measured, Pinning
from penstock.sidecars.planner.planner import MAX_REGIONS, Planner
from planner_messages import RUN, measured


def test_costs_of_rows_are_derived_from_the_times_of_tasks(served):
    client, _ = served
    hello(client)
    rows, ms = np.array([50, 50, 50, 50]), np.array([8.0, 1.0, 1.0, 1.0])
    answers = []
    for batch, ran_on in enumerate([[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]] * 3):
        tasks_ms = np.bincount(ran_on, rows * ms).tolist()
        answers.append(
            client.ask(
                measured(
                    batch=batch, rows=rows.tolist(), busy_ns=[10] * 4, tasks_ms=tasks_ms, attributes=True, ran_on=ran_on
                )
            )
        )
    assert [a.head["attributed"] for a in answers[:4]] == [False] * 4
    assert answers[-1].head["attributed"]
    with pa.ipc.open_stream(answers[-1].body) as stream:
        row_ns = stream.read_all().column("row_ns").to_numpy()
    # Up to 30 ms of each task are not counted as work, so the costs are not exact.
    assert row_ns[0] > 5 * row_ns[1:].max()


def test_forecasts_of_shards_survive_a_pin():
    planner = Planner()
    ones = np.ones(4, dtype=np.int64)

    def batch(number, load, pin_slots):
        none = np.zeros(0, dtype=np.int64)
        pinning = Pinning(1.1, 4, 2, 4, pin_slots, none.astype(np.int32), none, none, np.zeros(len(load)))
        tasks_ms = np.array([4.0, 6.0])
        return Measured(UUID(RUN), 0, number, 2, 2, 10.0, tasks_ms, load, load, True, None, pinning)

    for number in range(3):
        planner.plan(batch(number, ones, ()))
    region = next(iter(planner._regions.values()))
    before = region.forecaster
    planner.plan(batch(3, np.ones(5, dtype=np.int64), (8,)))
    assert next(iter(planner._regions.values())) is region
    assert region.forecaster is not before
    assert region.forecaster.items == 5
    assert region.forecaster.forecast().error.keys() >= before.forecast().error.keys() > set()
    planner.plan(batch(4, ones, ()))
    assert next(iter(planner._regions.values())) is region


def test_costs_of_rows_are_learnt_anew_for_a_pin_slot_with_another_hash():
    planner = Planner()
    none = np.zeros(0, dtype=np.int64)
    rows, ms = np.full(5, 50), np.array([8.0, 1.0, 1.0, 1.0, 8.0])

    def row_ns_of_batch(number, pin_slots):
        ran_on = np.array([[0, 0, 1, 1, 0], [0, 1, 0, 1, 0], [0, 1, 1, 0, 1]][number % 3], dtype=np.int32)
        pinning = Pinning(1.1, 4, 2, 4, pin_slots, none.astype(np.int32), none, none, np.zeros(5))
        tasks_ms = np.bincount(ran_on, rows * ms)
        busy_ns = np.full(5, 10, dtype=np.int64)
        return planner.plan(
            Measured(UUID(RUN), 0, number, 2, 2, 10.0, tasks_ms, rows, busy_ns, False, None, pinning, ran_on)
        ).row_ns

    assert row_ns_of_batch(0, (8,)) is None
    before = [row_ns_of_batch(number, (8,)) for number in range(1, 9)][-1]
    # The number of shards is the same, but one of them has other keys.
    ms[4] = 1.0
    after = row_ns_of_batch(9, (12,))
    assert after[:4] == pytest.approx(before[:4], rel=0.2)
    assert after[4] < before[4] / 2


def test_time_that_was_not_booked_is_shared_by_rows_if_little_was_booked():
    rows, busy_ns = np.array([10, 10, 20]), np.array([3_000_000, 0, 1_000_000])

    def batch(ran_on):
        hashes, key_rows, key_busy_ns = np.array([3], dtype=np.int32), np.array([1]), np.array([2_000_000])
        pinning = Pinning(1.1, 4, 2, 3, (), hashes, key_rows, key_busy_ns, np.zeros(3))
        tasks_ms = np.array([130.0, 50.0])
        return Measured(UUID(RUN), 0, 1, 2, 2, 10.0, tasks_ms, rows, busy_ns, False, None, pinning, ran_on), pinning

    # Of 120 ms of work 4 ms were booked; 116 ms are shared by rows.
    little, pinning = batch(np.zeros(3, dtype=np.int32))
    assert little.load_ms.tolist() == pytest.approx([3 + 29, 29, 1 + 58])
    assert little.load_of_keys_ms(pinning).tolist() == pytest.approx([2 + 2.9])
    enough, pinning = batch(None)
    assert enough.load_ms.tolist() == pytest.approx([90, 0, 30])
    assert enough.load_of_keys_ms(pinning).tolist() == pytest.approx([60])


def measured_batch(tasks_ms, rows, busy_ms):
    busy_ns = (np.array(busy_ms) * 1e6).astype(np.int64)
    return Measured(UUID(RUN), 0, 0, 2, 2, 500.0, np.array(tasks_ms), np.array(rows), busy_ns)


def test_the_fixed_time_of_a_task_is_not_work():
    quiet = measured_batch([25.0, 20.0], [5, 5, 0], [0.3, 0.15, 0])
    assert quiet.work_ms == pytest.approx([0.25, 0.2])
    assert quiet.load_ms == pytest.approx([0.3, 0.15, 0])


def test_work_that_was_not_booked_is_shared_like_booked_work_or_by_rows():
    assert measured_batch([130.0, 50.0], [5, 5, 0], [3, 1, 0]).load_ms == pytest.approx([90.0, 30.0, 0.0])
    assert measured_batch([130.0, 50.0], [5, 3, 0], [0, 0, 0]).load_ms == pytest.approx([75.0, 45.0, 0.0])
    assert measured_batch([], [0, 0], [0, 0]).load_ms.tolist() == [0.0, 0.0]


def test_the_number_of_remembered_regions_is_bounded():
    planner = Planner()
    for number in range(MAX_REGIONS + 10):
        planner.plan(Measured(UUID(int=number), 0, 0, 1, 1, 1.0, np.array([1.0]), np.ones(1, int), np.ones(1, int)))
    assert len(planner._regions) == MAX_REGIONS
