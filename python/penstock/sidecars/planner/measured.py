"""What the driver measured of a region in a batch, out of a frame."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.planning.cores import Counts
from penstock.planning.executors import LOST
from penstock.planning.load import Loads, Placement, loads
from penstock.planning.shard_policies import POLICIES
from penstock.planning.spark_hash import Hashes
from penstock.sidecars.planner.fields import RefusedError, read_bool, read_int, read_list, read_number, read_uuid
from penstock.sidecars.planner.frame import BrokenFrameError, Frame
from penstock.state.layout import MAX_PIN_SLOTS, PinSlots

MAX_SHARDS = (1 << 16) + MAX_PIN_SLOTS
MAX_KEYS = 1024
MAX_TASKS = 1 << 16
MAX_EXECUTORS = 1 << 14
MAX_NAME_CHARS = 1024
MAX_THETA = 10.0
TASK_MS = 30.0
"""What a task takes besides its rows, at most: beyond it, time is taken for work until batches show otherwise."""
_NS_PER_MS = 1e6


@dataclass(frozen=True)
class Placing:
    """What a policy that places shards between batches needs besides.

    Parameters
    ----------
    policy
        One of `shard_policies.POLICIES`.
    theta
        Largest load over the mean that is accepted, above 1.
    tasks
        Tasks that `task` speaks of: N, but in ``observe``, where as many ran as there are shards.
    task
        Of each shard, as it was proposed; shape ``(shards,)``.
    state_bytes
        Size of each shard's state, 0 where it is not known; shape ``(shards,)``.
    """

    policy: str
    theta: float
    tasks: int
    task: Placement
    state_bytes: Loads


@dataclass(frozen=True)
class Pinning:
    """What planning of pinned keys needs besides.

    Parameters
    ----------
    theta
        Largest load of a task over the mean that is accepted, above 1.
    most
        Hashes that may be pinned.
    tasks
        N as it was proposed.
    base_shards
        S, the shards without those of pinned hashes.
    pin_slots
        Hashes that are pinned, by their shards, from shard S on; None for a pin slot that is free.
    hashes, rows, busy_ns
        Keys that had much of the time or of the rows, and what they had at least; shape ``(keys,)``.
    state_bytes
        Size of each shard's state, 0 where it is not known; shape ``(shards,)``.
    """

    theta: float
    most: int
    tasks: int
    base_shards: int
    pin_slots: PinSlots
    hashes: Hashes
    rows: NDArray[np.int64]
    busy_ns: NDArray[np.int64]
    state_bytes: Loads


@dataclass(frozen=True)
class Homing:
    """What planning of shards between executors needs besides.

    Parameters
    ----------
    theta
        Largest load of an executor for each of its cores, over the mean, that is accepted, above 1.
    changed
        Whether the batch had other executors than there are now.
    bytes_per_ms, move_ms
        At which state travels, and what a move takes besides.
    executors
        Names of the executors, each once.
    cores
        Of each executor, above 0; shape ``(executors,)``.
    tasks
        That it had on each executor, all 0 where they were not divided among them; shape ``(executors,)``.
    executor
        Of each shard, `LOST` where it has none; shape ``(shards,)``.
    state_bytes
        Size of each shard's state, 0 where it is not known; shape ``(shards,)``.
    """

    theta: float
    changed: bool
    bytes_per_ms: float
    move_ms: float
    executors: tuple[str, ...]
    cores: Loads
    tasks: Counts
    executor: Placement
    state_bytes: Loads

    @property
    def bytes_by_executor(self) -> Loads:
        """State on each executor; shape ``(executors,)``."""
        held = self.executor != LOST
        return loads(self.executor[held], self.state_bytes[held], len(self.cores))


@dataclass(frozen=True)
class Measured:
    """What came of a batch.

    Parameters
    ----------
    run, region, batch
        Which.
    tasks
        N.
    most
        Tasks that can run at once.
    stage_ms
        From the binding of shards to the last task's end.
    tasks_ms
        Time of each task, in their order, without waiting and without what kept it from running; shape
        ``(tasks that reported,)``.
    rows
        Of each shard; shape ``(shards,)``.
    busy_ns
        Part of the time that was booked to rows, by the load that each shard was bound by; shape ``(shards,)``.
    plans_tasks
        Whether N is to be planned.
    placing
        None where shards are bound at the barrier.
    pinning
        None where pinned keys are not planned.
    ran_on
        Task that each shard ran on, below the tasks that reported; shape ``(shards,)``. None where tasks could time
        their rows, so that what rows cost need not be found out from the times of tasks.
    homing
        None where shards cannot go from one executor to another.
    """

    run: UUID
    region: int
    batch: int
    tasks: int
    most: int
    stage_ms: float
    tasks_ms: Loads
    rows: NDArray[np.int64]
    busy_ns: NDArray[np.int64]
    plans_tasks: bool = True
    placing: Placing | None = None
    pinning: Pinning | None = None
    ran_on: Placement | None = None
    homing: Homing | None = None

    @property
    def work_ms(self) -> Loads:
        """Time of each task that other tasks could have taken from it, shape ``(tasks that reported,)``.

        That is what was booked to shards, and of the rest (work on other threads, evictions) what is more than a task
        takes to open its stores and to commit.
        """
        total_ms = float(self.tasks_ms.sum())
        booked = min(1.0, float(self.busy_ns.sum()) / _NS_PER_MS / total_ms) if total_ms else 0.0
        return np.maximum(self.tasks_ms * booked, self.tasks_ms - TASK_MS)

    @property
    def load_ms(self) -> Loads:
        """Work of each shard: that of all tasks, shared as the time that was booked is, else by rows.

        Where only a small part was booked (`ran_on` is given), the rest is shared by rows: it was others' work.
        """
        return self._as_work(self.busy_ns, self.rows)

    def load_of_keys_ms(self, pinning: Pinning, row_ms: Loads | None = None) -> Loads:
        """Work of each heavy key, at most that of its shard; shape ``(keys,)``.

        Parameters
        ----------
        row_ms
            What a row of each shard takes, where that is known better than by what was booked.
        """
        at = {h: pinning.base_shards + slot for slot, h in enumerate(pinning.pin_slots)}
        shard = np.array([at.get(h, h % pinning.base_shards) for h in pinning.hashes.tolist()], dtype=np.int64)
        if row_ms is not None:
            return np.minimum(pinning.rows, self.rows[shard]) * row_ms[shard]
        return np.minimum(self._as_work(pinning.busy_ns, pinning.rows), self.load_ms[shard])

    def _as_work(self, busy_ns: NDArray[np.int64], rows: NDArray[np.int64]) -> Loads:
        work_ms, booked_ms = float(self.work_ms.sum()), float(self.busy_ns.sum()) / _NS_PER_MS
        busy_ms: Loads = busy_ns / _NS_PER_MS
        if booked_ms > 0 and self.ran_on is None:
            return busy_ms * (work_ms / booked_ms)
        busy_ms += rows * (max(0.0, work_ms - booked_ms) / max(1.0, float(self.rows.sum())))
        return busy_ms


def of_frame(frame: Frame) -> Measured:
    """Read a frame of kind ``measured``.

    Raises
    ------
    BrokenFrameError
        The body is no Arrow stream.
    RefusedError
        A field is missing, or has a value that cannot be.
    """
    head = frame.head
    shards = read_int(head, "shards", 1, MAX_SHARDS)
    tasks_ms = np.array([read_number(value, "tasks_ms") for value in read_list(head, "tasks_ms", MAX_TASKS)])
    names = ["rows", "busy_ns"]
    names += ["task"] if "placing" in head else []
    names += ["ran_on"] if read_bool(head, "attributes") else []
    names += ["home"] if "homing" in head else []
    names += ["state_bytes"] if head.keys() & {"placing", "pinning", "homing"} else []
    columns = dict(zip(names, _columns(frame.body, shards, *names), strict=True))
    return Measured(
        read_uuid(head),
        read_int(head, "region", 0, 1 << 62),
        read_int(head, "batch", 0, 1 << 62),
        read_int(head, "tasks", 1, MAX_TASKS),
        read_int(head, "most", 1, MAX_TASKS),
        read_number(head.get("stage_ms"), "stage_ms"),
        tasks_ms,
        columns["rows"],
        columns["busy_ns"],
        read_bool(head, "plans_tasks"),
        _placing(head["placing"], columns["task"], columns["state_bytes"]) if "placing" in head else None,
        _pinning(head["pinning"], columns["state_bytes"]) if "pinning" in head else None,
        _ran_on(columns["ran_on"], len(tasks_ms)) if "ran_on" in columns else None,
        _homing(head["homing"], columns["home"], columns["state_bytes"]) if "homing" in head else None,
    )


def _ran_on(task: NDArray[np.int64], tasks: int) -> Placement:
    if task.max() >= tasks:
        raise RefusedError(f"column ran_on has {task.max()}, and {tasks} tasks have reported")
    return task.astype(np.int32)


def _placing(told: Any, task: NDArray[np.int64], state_bytes: NDArray[np.int64]) -> Placing:
    if not isinstance(told, dict):
        raise RefusedError(f"placing must be an object, found {told!r}")
    policy, theta = told.get("policy"), _theta(told)
    if policy not in POLICIES:
        raise RefusedError(f"policy must be one of {', '.join(POLICIES)}, found {policy!r}")
    tasks = read_int(told, "tasks", 1, MAX_TASKS)
    if task.max() >= tasks:
        raise RefusedError(f"column task has {task.max()}, and there are {tasks} tasks")
    return Placing(policy, theta, tasks, task.astype(np.int32), state_bytes.astype(np.float64))


def _pinning(told: Any, state_bytes: NDArray[np.int64]) -> Pinning:
    if not isinstance(told, dict):
        raise RefusedError(f"pinning must be an object, found {told!r}")
    pin_slots = tuple(None if h is None else _hash(h, "pin_slots") for h in read_list(told, "pin_slots", MAX_PIN_SLOTS))
    base_shards = read_int(told, "base_shards", 1, MAX_SHARDS)
    if base_shards + len(pin_slots) != len(state_bytes):
        raise RefusedError(
            f"{base_shards} base shards and {len(pin_slots)} pin slots are not {len(state_bytes)} shards"
        )
    hashes = [_hash(h, "hashes") for h in read_list(told, "hashes", MAX_KEYS)]
    if len(set(hashes)) != len(hashes):
        raise RefusedError("hashes has one twice")
    numbers = {}
    for name in ("rows", "busy_ns"):
        values = [read_number(n, name) for n in read_list(told, name, MAX_KEYS)]
        if len(values) != len(hashes):
            raise RefusedError(f"{name} must have {len(hashes)} numbers, one for each of hashes, found {len(values)}")
        numbers[name] = np.array(values, dtype=np.float64).astype(np.int64)
    return Pinning(
        _theta(told),
        read_int(told, "most", 0, MAX_PIN_SLOTS),
        read_int(told, "tasks", 1, MAX_TASKS),
        base_shards,
        pin_slots,
        np.array(hashes, dtype=np.int32),
        numbers["rows"],
        numbers["busy_ns"],
        state_bytes.astype(np.float64),
    )


def _homing(told: Any, home: NDArray[np.int64], state_bytes: NDArray[np.int64]) -> Homing:
    if not isinstance(told, dict):
        raise RefusedError(f"homing must be an object, found {told!r}")
    cores = np.array([read_number(n, "cores") for n in read_list(told, "cores", MAX_EXECUTORS)], dtype=np.float64)
    bytes_per_ms, move_ms = (
        read_number(told.get("bytes_per_ms"), "bytes_per_ms"),
        read_number(told.get("move_ms"), "move_ms"),
    )
    if not len(cores) or cores.min() < 1 or bytes_per_ms <= 0:
        raise RefusedError(f"cores must be 1 at least, and bytes_per_ms above 0, found {cores} and {bytes_per_ms}")
    if home.max() > len(cores):
        raise RefusedError(f"column home has {home.max()}, and there are {len(cores)} executors")
    executors = read_list(told, "executors", MAX_EXECUTORS)
    if not all(isinstance(name, str) and len(name) <= MAX_NAME_CHARS for name in executors):
        raise RefusedError(f"executors must be names of at most {MAX_NAME_CHARS} characters, found {executors!r}")
    tasks = np.array([read_number(n, "tasks") for n in read_list(told, "tasks", MAX_EXECUTORS)], dtype=np.float64)
    if not len(cores) == len(executors) == len(set(executors)) == len(tasks) or tasks.max() > MAX_TASKS:
        raise RefusedError(
            f"there are {len(cores)} executors: each must have a name of its own in executors, and in tasks at most "
            f"{MAX_TASKS}, found {executors!r} and {tasks}"
        )
    executor = np.where(home == len(cores), LOST, home).astype(np.int32)
    return Homing(
        _theta(told),
        read_bool(told, "changed"),
        bytes_per_ms,
        move_ms,
        tuple(executors),
        cores,
        tasks.astype(np.int64),
        executor,
        state_bytes.astype(np.float64),
    )


def _theta(told: dict[str, Any]) -> float:
    theta = read_number(told.get("theta"), "theta")
    if not 1.0 < theta <= MAX_THETA:
        raise RefusedError(f"theta must be above 1 and at most {MAX_THETA:.0f}, found {theta}")
    return theta


def _hash(value: Any, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -(1 << 31) <= value < 1 << 31:
        raise RefusedError(f"{name} must be whole numbers of 32 bits, found {value!r}")
    return value


def _columns(body: bytes, shards: int, *names: str) -> list[NDArray[np.int64]]:
    try:
        with pa.ipc.open_stream(body) as stream:
            table = stream.read_all()
            table.validate(full=True)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, OSError) as error:
        raise BrokenFrameError(f"the body of a frame is no Arrow stream: {error}") from None
    columns = []
    for name in names:
        if table.schema.get_field_index(name) < 0:
            raise RefusedError(f"column {name} is missing")
        column = table.column(name)
        if column.type != pa.int64() or column.null_count or len(column) != shards:
            raise RefusedError(f"column {name} must have {shards} numbers (int64), found {len(column)} ({column.type})")
        values = column.to_numpy()
        if values.min() < 0:
            raise RefusedError(f"column {name} has a negative number")
        columns.append(values)
    return columns
