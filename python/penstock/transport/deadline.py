"""Deadlines of whole operations, independent of their number of steps."""

from __future__ import annotations

import time
from dataclasses import dataclass

from penstock.transport.errors import PeerTimeoutError


@dataclass(frozen=True)
class Deadline:
    """A point on the monotonic clock, in seconds."""

    at_s: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """Return the deadline that many seconds from now."""
        return cls(time.monotonic() + seconds)

    def or_after(self, seconds: float) -> Deadline:
        """Return the earlier of this deadline and the one that many seconds from now."""
        return Deadline(min(self.at_s, time.monotonic() + seconds))

    def left_s(self, waiting_for: str) -> float:
        """Return the remaining time in seconds, above 0.

        Raises
        ------
        PeerTimeoutError
            The deadline has passed.
        """
        left = self.at_s - time.monotonic()
        if left <= 0:
            raise PeerTimeoutError(f"timed out waiting for {waiting_for}")
        return left
