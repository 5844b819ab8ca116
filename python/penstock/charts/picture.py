"""Draw charts as PNG pictures."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from penstock.charts.chart import Chart

WIDTH_INCHES, HEIGHT_INCHES, DOTS_PER_INCH = 5.2, 3.6, 96
MARKED_POINTS = 20


def draw(charts: Sequence[Chart], path: Path) -> None:
    """Draw charts side by side.

    Parameters
    ----------
    charts
        Charts to draw, at least one.
    path
        Path of the PNG file.
    """
    figure = Figure(figsize=(WIDTH_INCHES * len(charts), HEIGHT_INCHES), dpi=DOTS_PER_INCH, layout="constrained")
    FigureCanvasAgg(figure)
    for number, chart in enumerate(charts):
        _draw(figure.add_subplot(1, len(charts), number + 1), chart)
    # Without the library's metadata, the same charts always give the same file.
    figure.savefig(path, metadata={"Software": None})


def _draw(axes: Axes, chart: Chart) -> None:
    for line in chart.lines:
        marker = "o" if len(line.x) <= MARKED_POINTS else ""
        axes.plot(line.x, line.y, label=line.name, marker=marker, markersize=3, linewidth=1.2)
    if chart.log_x:
        axes.set_xscale("log")
    if chart.log_y:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label)
    axes.grid(visible=True, linewidth=0.3)
    axes.legend(fontsize="small")
