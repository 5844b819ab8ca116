"""Data of a chart."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """A line of a chart.

    Parameters
    ----------
    name
        Name of the line in the legend.
    x, y
        Coordinates of the points, in the order in which they are connected.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True)
class Chart:
    """Lines over a common axis.

    Parameters
    ----------
    x_label, y_label
        Labels of the axes, with units.
    lines
        Lines of the chart, at least one.
    log_x, log_y
        Whether the axes are logarithmic.
    """

    x_label: str
    y_label: str
    lines: Sequence[Line]
    log_x: bool = False
    log_y: bool = False
