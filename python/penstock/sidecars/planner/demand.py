"""What the driver measured of a query's batch, for the number of executors, out of a frame."""

from dataclasses import dataclass
from uuid import UUID

from penstock.planning.scaling import Batch, Bounds
from penstock.sidecars.planner.fields import RefusedError, read_int, read_number, read_uuid
from penstock.sidecars.planner.frame import Frame

MAX_EXECUTORS = 1 << 14
MAX_CORES = 1 << 16


@dataclass(frozen=True)
class Demand:
    """What came of a query's batch.

    Parameters
    ----------
    run, batch
        Which.
    executors
        That there are.
    was
        The batch.
    bounds
        What may be asked for.
    """

    run: UUID
    batch: int
    executors: int
    was: Batch
    bounds: Bounds


def demand_of(frame: Frame) -> Demand:
    """Read a frame of kind ``demand``.

    Raises
    ------
    RefusedError
        A field is missing, or has a value that cannot be.
    """
    head = frame.head
    interval_ms = read_number(head.get("interval_ms"), "interval_ms")
    target_ms = read_number(head.get("target_ms"), "target_ms")
    if interval_ms <= 0 or target_ms <= 0:
        raise RefusedError(f"interval_ms and target_ms must be above 0, found {interval_ms} and {target_ms}")
    least = read_int(head, "least", 1, MAX_EXECUTORS)
    return Demand(
        read_uuid(head),
        read_int(head, "batch", 0, 1 << 62),
        read_int(head, "executors", 1, MAX_EXECUTORS),
        Batch(
            read_int(head, "rows", 0, 1 << 62),
            read_number(head.get("batch_ms"), "batch_ms"),
            interval_ms,
            read_number(head.get("work_ms"), "work_ms"),
            read_int(head, "tasks", 1, MAX_CORES),
        ),
        Bounds(target_ms, read_int(head, "cores", 1, MAX_CORES), least, read_int(head, "most", least, MAX_EXECUTORS)),
    )
