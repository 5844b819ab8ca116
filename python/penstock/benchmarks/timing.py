"""The time of one call."""

import time
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")


def timed(call: Callable[[], Answer]) -> tuple[float, Answer]:
    """Give the milliseconds that a call takes, and its answer."""
    begin = time.perf_counter_ns()
    answer = call()
    return (time.perf_counter_ns() - begin) / 1e6, answer
