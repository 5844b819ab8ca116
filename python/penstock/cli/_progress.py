"""How far a command is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

Tick = Callable[[], None]


class Steps:
    """Steps of a command, one after the other, of so many ticks each."""

    def __init__(self, names: Sequence[str], ticks: int = 1) -> None:
        """Begin with none done.

        Parameters
        ----------
        names
            Of the steps, in their order.
        ticks
            Of each step; 1 for one that does not tell how far it is.
        """
        self._names = names
        self._ticks = max(1, ticks)
        self._console = Console(stderr=True)
        self._done = 0

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show a bar with the time that is left on a terminal; elsewhere a line is written after each step."""
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        with self._bar:
            self._task = self._bar.add_task("", total=len(self._names) * self._ticks)
            yield

    @contextmanager
    def step(self) -> Iterator[Tick]:
        """Do the next step; gives what it calls after each of its ticks but the last, or never."""
        name, begin = self._names[self._done], time.monotonic()
        self._bar.update(self._task, description=name)
        yield lambda: self._bar.advance(self._task)
        self._done += 1
        self._bar.update(self._task, completed=self._done * self._ticks)
        if not self._console.is_terminal:
            seconds = time.monotonic() - begin
            self._console.print(f"{name}: {self._done} of {len(self._names)}, {seconds:.1f} s", highlight=False)
