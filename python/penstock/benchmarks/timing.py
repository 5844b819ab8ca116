"""Measure the time of a call."""

import time
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")


def timed(call: Callable[[], Answer]) -> tuple[float, Answer]:
    """Return the time that a call takes, in milliseconds, and its result."""
    begin = time.perf_counter_ns()
    answer = call()
    return (time.perf_counter_ns() - begin) / 1e6, answer
