"""What the driver measured of a query's batch, for the number of executors, out of a frame."""

from dataclasses import dataclass
from uuid import UUID

from penstock.planning.scaling import Batch, Bounds
from penstock.sidecars.planner.fields import RefusedError, a_number, a_uuid, a_whole
from penstock.sidecars.planner.frame import Frame

MOST_EXECUTORS = 1 << 14
MOST_CORES = 1 << 16


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
    interval_ms = a_number(head.get("interval_ms"), "interval_ms")
    target_ms = a_number(head.get("target_ms"), "target_ms")
    if interval_ms <= 0 or target_ms <= 0:
        raise RefusedError(f"interval_ms and target_ms must be above 0, found {interval_ms} and {target_ms}")
    least = a_whole(head, "least", 1, MOST_EXECUTORS)
    return Demand(
        a_uuid(head),
        a_whole(head, "batch", 0, 1 << 62),
        a_whole(head, "executors", 1, MOST_EXECUTORS),
        Batch(
            a_whole(head, "rows", 0, 1 << 62),
            a_number(head.get("batch_ms"), "batch_ms"),
            interval_ms,
            a_number(head.get("work_ms"), "work_ms"),
            a_whole(head, "tasks", 1, MOST_CORES),
        ),
        Bounds(target_ms, a_whole(head, "cores", 1, MOST_CORES), least, a_whole(head, "most", least, MOST_EXECUTORS)),
    )
