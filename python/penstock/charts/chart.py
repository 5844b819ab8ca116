"""What a chart shows."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """A curve of a chart.

    Parameters
    ----------
    name
        What the legend says.
    x, y
        Points, in the order in which they are connected.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True)
class Chart:
    """Curves over a common axis.

    Parameters
    ----------
    x_label, y_label
        With units.
    lines
        At least one.
    log_x, log_y
        Whether the axes are logarithmic.
    """

    x_label: str
    y_label: str
    lines: Sequence[Line]
    log_x: bool = False
    log_y: bool = False
