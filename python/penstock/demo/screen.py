"""Show the running demonstration in a terminal."""

from collections.abc import Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from penstock.api.errors import PenstockError
from penstock.demo.record import Record
from penstock.demo.report import HEADER, summary
from penstock.demo.variant import Variant
from penstock.monitor.document import fetch
from penstock.monitor.document import read as read_status
from penstock.monitor.view import sparkline, view

BATCHES = 40
BAR_CELLS = 40


def screen(asks: str, compared: Sequence[Variant], records: dict[str, Record]) -> RenderableType:
    """Draw all runs.

    Parameters
    ----------
    asks
        Text of the question.
    compared
        All variants.
    records
        Measurements of the variants that have started, by name. The last one is running.
    """
    running = next(reversed(records), None)
    parts: list[RenderableType] = [Text(asks, style="bold")]
    for variant in compared:
        record = records.get(variant.name)
        parts.append(
            Panel(
                _run(record),
                title=f"{variant.title} ({variant.how})",
                title_align="left",
                border_style="" if record else "dim",
            )
        )
        if record and variant.penstock and variant.name == running:
            parts += _status(record)
    return Group(*parts)


def _run(record: Record | None) -> RenderableType:
    if record is None:
        return Text("waiting", style="dim")
    if record.session is None:
        return Text("starting Spark")
    if record.started is None:
        return Text(f"warming up: {len(record.warm_up)} batches")
    total = record.session.pieces - record.started.piece
    ms = [batch.ms for batch in record.working[-BATCHES:]]
    rates = [sum(batch.rows.values()) / max(1, batch.ms) * 1000 for batch in record.working[-BATCHES:]]
    grid = Table.grid(padding=(0, 2))
    grid.add_row(
        ProgressBar(total=total, completed=len(record.delivered), width=BAR_CELLS),
        f"{len(record.delivered)} of {total} pieces delivered, {_answered(record):.0%} of their rows answered",
    )
    if ms:
        grid.add_row(Text(sparkline(rates), style="green"), f"{rates[-1]:,.0f} rows/s in the last batch")
        grid.add_row(Text(sparkline(ms), style="yellow"), f"{ms[-1]:,} ms in the last batch")
        grid.add_row(
            "",
            f"half of all rows answered within {record.latency_s(0.5):.1f} s, "
            f"99 % within {record.latency_s(0.99):.1f} s",
        )
    return grid


def _answered(record: Record) -> float:
    delivered = sum(sum(piece.rows.values()) for piece in record.delivered)
    return sum(sum(batch.rows.values()) for batch in record.batches) / delivered if delivered else 1.0


def _status(record: Record) -> list[RenderableType]:
    """Draw the driver's status. Empty if the driver does not answer, for example because it is ending."""
    if record.session is None or record.loads is not None:
        return []
    try:
        return [view(read_status(fetch(record.session.ui_url, BATCHES)))]
    except PenstockError:
        return []


def table(compared: Sequence[Variant], records: Mapping[str, Record]) -> Table:
    """Draw the table of results."""
    drawn = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for number, name in enumerate(HEADER):
        drawn.add_column(name, justify="right" if number else "left", no_wrap=True)
    for row in summary(compared, records):
        drawn.add_row(*row)
    return drawn
