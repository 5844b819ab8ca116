"""Points in time that whole operations end at, however many steps they have."""

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
        """So many seconds from now."""
        return cls(time.monotonic() + seconds)

    def or_after(self, seconds: float) -> Deadline:
        """Whichever comes first, this one or so many seconds from now."""
        return Deadline(min(self.at_s, time.monotonic() + seconds))

    def left_s(self, waiting_for: str) -> float:
        """Time that is left, in seconds, above 0.

        Raises
        ------
        PeerTimeoutError
            There is none.
        """
        left = self.at_s - time.monotonic()
        if left <= 0:
            raise PeerTimeoutError(f"waited for {waiting_for}, and the time is over")
        return left
