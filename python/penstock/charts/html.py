"""A self-contained HTML page with a table and charts."""

import base64
import html
import tempfile
from collections.abc import Sequence
from pathlib import Path

from penstock.charts.chart import Chart
from penstock.charts.picture import draw

_STYLE = (
    "body{font-family:sans-serif;margin:2em auto;max-width:72em;color:#222}"
    "table{border-collapse:collapse}td,th{padding:.3em .8em;border-bottom:1px solid #ccc;text-align:right}"
    "td:first-child,th:first-child{text-align:left}img{max-width:100%}"
)


def page(
    title: str, notes: Sequence[str], header: Sequence[str], rows: Sequence[Sequence[str]], charts: Sequence[Chart]
) -> str:
    """Return a page as HTML.

    Parameters
    ----------
    title
        Heading of the page.
    notes
        Paragraphs below the heading.
    header, rows
        Cells of the table. Every row has as many cells as the header.
    charts
        Charts, which are drawn side by side in one embedded picture.
    """
    with tempfile.TemporaryDirectory(prefix="penstock-page-") as folder:
        picture = Path(folder) / "charts.png"
        draw(charts, picture)
        image = base64.b64encode(picture.read_bytes()).decode("ascii")
    paragraphs = "".join(f"<p>{html.escape(note)}</p>\n" for note in notes)
    lines = "".join(f"<tr>{_cells(row, 'td')}</tr>\n" for row in rows)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>\n'
        f"<style>{_STYLE}</style></head>\n<body><h1>{html.escape(title)}</h1>\n{paragraphs}"
        f"<table><tr>{_cells(header, 'th')}</tr>\n{lines}</table>\n"
        f'<p><img alt="{html.escape(title)}" src="data:image/png;base64,{image}"></p>\n</body></html>\n'
    )


def _cells(texts: Sequence[str], tag: str) -> str:
    return "".join(f"<{tag}>{html.escape(text)}</{tag}>" for text in texts)
