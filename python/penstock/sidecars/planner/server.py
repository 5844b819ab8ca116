"""Serves the driver on a Unix socket, one question after the other."""

import hmac
import platform
import socket
import traceback
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock import __version__
from penstock.sidecars.planner.demand import demand_of
from penstock.sidecars.planner.fields import RefusedError
from penstock.sidecars.planner.frame import (
    PREFIX_BYTES,
    BrokenFrameError,
    Frame,
    Kind,
    decode_prefix,
    decode_rest,
    encode,
)
from penstock.sidecars.planner.measured import of_frame
from penstock.sidecars.planner.planner import Planner

MAX_REASON_CHARS = 1000
MAX_TRACE_CHARS = 8000
"""Largest length of a traceback. Its end is kept, where the error is."""


def serve(connection: socket.socket, token: str, planner: Planner) -> None:
    """Answer the driver's frames until it closes the connection.

    Raises
    ------
    BrokenFrameError
        The driver sent an invalid frame, or did not begin with the right token.
    OSError
        The connection broke.
    """
    hello = _receive(connection)
    if hello is None:
        return
    given = hello.head.get("token")
    if (
        hello.kind != Kind.HELLO
        or not isinstance(given, str)
        or not hmac.compare_digest(given.encode(), token.encode())
    ):
        raise BrokenFrameError("the connection does not begin with a hello that has the right token")
    welcome = {"penstock": __version__, "python": platform.python_version()}
    connection.sendall(encode(Frame(Kind.WELCOME, hello.number, welcome)))
    while (frame := _receive(connection)) is not None:
        connection.sendall(_answer(frame, planner))


def _answer(frame: Frame, planner: Planner) -> bytes:
    """Answer a question; an error affects only the answer to that question."""
    try:
        return encode(_found(frame, planner))
    except RefusedError as error:
        head = {"reason": str(error)}
    except BrokenFrameError:
        raise
    except Exception as error:
        # Planning for other regions and queries continues after any error.
        trace = "".join(traceback.format_exception(error))
        head = {
            "reason": f"{type(error).__name__}: {error}"[:MAX_REASON_CHARS],
            "traceback": trace[-MAX_TRACE_CHARS:],
        }
    return encode(Frame(Kind.REFUSED, frame.number, head))


def _found(frame: Frame, planner: Planner) -> Frame:
    if frame.kind == Kind.MEASURED:
        return _planned(frame, planner)
    if frame.kind == Kind.DEMAND:
        return _scaled(frame, planner)
    raise RefusedError(f"a driver does not send {frame.kind.name.lower()}")


def _scaled(frame: Frame, planner: Planner) -> Frame:
    demand = demand_of(frame)
    scale = planner.scale(demand)
    head = {
        "run": str(demand.run),
        "batch": demand.batch,
        "executors": scale.executors,
        "reason": scale.reason,
    }
    return Frame(Kind.SCALED, frame.number, head)


def _planned(frame: Frame, planner: Planner) -> Frame:
    measured = of_frame(frame)
    plan = planner.plan(measured)
    head = {
        "run": str(measured.run),
        "region": measured.region,
        "batch": measured.batch,
        "tasks": plan.tasks,
        "reason": plan.reason,
    }
    if plan.pins is not None:
        head |= {"pinned": plan.pins.hashes, "pins_reason": plan.pins.reason}
    if plan.homes is not None:
        head["homes_reason"] = plan.homes.reason
    if plan.executor_tasks is not None:
        head["executor_tasks"] = plan.executor_tasks.tolist()
    head["attributed"] = plan.row_ns is not None
    executor = None if plan.homes is None else plan.homes.executor
    columns = {"task": plan.task, "row_ns": plan.row_ns, "home": executor}
    return Frame(Kind.PLANNED, frame.number, head, _body({n: c for n, c in columns.items() if c is not None}))


def _body(columns: dict[str, NDArray[Any]]) -> bytes:
    """Encode columns with one row per shard; empty if there are no columns."""
    if not columns:
        return b""
    schema = pa.schema([pa.field(name, pa.int64(), nullable=False) for name in columns])
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, schema) as writer:
        writer.write_batch(pa.record_batch([pa.array(c.astype(np.int64)) for c in columns.values()], schema=schema))
    body: bytes = out.getvalue().to_pybytes()
    return body


def _receive(connection: socket.socket) -> Frame | None:
    """Read a frame; return None if the other side closed the connection between two frames."""
    start = _read(connection, PREFIX_BYTES)
    if not start:
        return None
    if len(start) < PREFIX_BYTES:
        raise BrokenFrameError("the connection was closed within a frame")
    prefix = decode_prefix(start)
    return decode_rest(prefix, _read(connection, prefix.head_bytes + prefix.body_bytes))


def _read(connection: socket.socket, count: int) -> bytes:
    """Read `count` bytes, or fewer at the end of the connection."""
    data = bytearray()
    while len(data) < count:
        part = connection.recv(min(count - len(data), 1 << 20))
        if not part:
            break
        data += part
    return bytes(data)
