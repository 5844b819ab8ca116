"""Watch the queries of a running application: throughput, imbalance, shards, heavy keys, decisions.

The command reads from Spark's UI server on the driver, until Ctrl-C is pressed. While the driver does not answer, it
says so and tries again.
"""

import argparse
import time

from penstock.api.errors import PenstockError
from penstock.cli._options import invalid
from penstock.monitor.document import fetch, read

DEFAULT_URL = "http://localhost:4040"
MAX_BATCHES = 100
MIN_INTERVAL_S, MAX_INTERVAL_S = 0.1, 3600.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "url", nargs="?", default=DEFAULT_URL, metavar="URL", help=f"URL of Spark's UI; default {DEFAULT_URL}"
    )
    parser.add_argument("--query", metavar="NAME", help="watch only the query with this name, id or run id")
    parser.add_argument(
        "--batches",
        type=int,
        default=40,
        metavar="N",
        help="number of newest batches in the small charts: 1 to 100; default 40",
    )
    parser.add_argument(
        "--interval", type=float, default=1.0, metavar="SECONDS", help="time between two updates; default 1"
    )
    parser.add_argument(
        "--once", action="store_true", help="print the status once and exit; implied if the output is not a terminal"
    )
    parser.add_argument("--json", action="store_true", help="print the driver's status once, as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Show the status once, or until Ctrl-C is pressed."""
    _check(arguments)
    text = fetch(arguments.url, arguments.batches, arguments.query)
    status = read(text)
    if arguments.json:
        print(text)
        return 0
    # Imported here because `--json` does not need it and the import takes long.
    from rich.console import Console, Group, RenderableType  # noqa: PLC0415
    from rich.live import Live  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    from penstock.monitor.view import view  # noqa: PLC0415

    console = Console()
    newest: RenderableType = view(status)
    if arguments.once or not console.is_terminal:
        console.print(newest)
        return 0
    with Live(newest, console=console, screen=True, auto_refresh=False) as live:
        try:
            while True:
                time.sleep(arguments.interval)
                try:
                    newest = view(read(fetch(arguments.url, arguments.batches, arguments.query)))
                    live.update(newest, refresh=True)
                except PenstockError as error:
                    live.update(Group(Text(error.detail, style="red"), newest), refresh=True)
        except KeyboardInterrupt:
            return 0


def _check(arguments: argparse.Namespace) -> None:
    if not 1 <= arguments.batches <= MAX_BATCHES:
        raise invalid("batches", arguments.batches, f"1 to {MAX_BATCHES}")
    if not MIN_INTERVAL_S <= arguments.interval <= MAX_INTERVAL_S:
        raise invalid("interval", arguments.interval, f"{MIN_INTERVAL_S:g} to {MAX_INTERVAL_S:g} seconds")
