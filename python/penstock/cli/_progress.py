"""Progress of a command."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

Tick = Callable[[], None]


class Steps:
    """The steps of a command, which run one after another. Each has the same number of ticks."""

    def __init__(self, names: Sequence[str], ticks: int = 1) -> None:
        """Create the steps. None of them is done yet.

        Parameters
        ----------
        names
            Names of the steps, in their order.
        ticks
            Number of ticks of each step. It is 1 if the steps do not report their progress.
        """
        self._names = names
        self._ticks = max(1, ticks)
        self._console = Console(stderr=True)
        self._done = 0

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show a progress bar with the remaining time. If the output is not a terminal, print a line for each step."""
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
        """Run the next step. Yields the function that the step calls after each of its ticks.

        The call after the last tick may be omitted, and a step that does not report its progress never calls it.
        """
        name, begin = self._names[self._done], time.monotonic()
        self._bar.update(self._task, description=name)
        yield lambda: self._bar.advance(self._task)
        self._done += 1
        self._bar.update(self._task, completed=self._done * self._ticks)
        if not self._console.is_terminal:
            seconds = time.monotonic() - begin
            self._console.print(f"{name}: {self._done} of {len(self._names)}, {seconds:.1f} s", highlight=False)
