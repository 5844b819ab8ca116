"""Waits for a condition that another process or thread makes true. Tests of all folders import it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
INTERVAL_S = 0.1
"""Pause between two looks at the condition, in seconds."""


def eventually(condition: Callable[[], T | None], *, timeout_s: float, what: str | Callable[[], str]) -> T:
    """Wait until a condition is true.

    Parameters
    ----------
    condition
        Looked at repeatedly, and at least once. An error that it raises ends the wait.
    timeout_s
        Time limit in seconds.
    what
        Statement that was expected to become true, for the error. A function is called only if the time is over.

    Returns
    -------
    T
        What the condition returned, which is true.

    Raises
    ------
    AssertionError
        The condition was not true within the time limit.
    """
    until = time.monotonic() + timeout_s
    while not (found := condition()):
        if time.monotonic() >= until:
            raise AssertionError(f"not within {timeout_s:g} s: {what if isinstance(what, str) else what()}")
        time.sleep(INTERVAL_S)
    return found
