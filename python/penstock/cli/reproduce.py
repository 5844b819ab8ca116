"""Run the papers' experiments again, as far as counting and simulation can, and write pages of them.

Each claim of a paper stands beside our figure, with pictures, and with the errata: places where the paper is wrong or
silent. Nothing of it needs Spark. One core is busy for about five minutes with fang, one with elasticutor.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from penstock.api.errors import PenstockError
from penstock.benchmarks import machine
from penstock.charts import picture
from penstock.cli._files import check_file
from penstock.cli._options import invalid
from penstock.cli._progress import Steps
from penstock.reproduction import elasticutor, fang, page
from penstock.reproduction.effort import BRIEF, Effort

PAPERS = {"fang": fang.PAPER, "elasticutor": elasticutor.PAPER}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("paper", choices=PAPERS, help="whose experiments")
    parser.add_argument("--out", type=Path, required=True, metavar="DIRECTORY", help="where pages and pictures go")
    parser.add_argument("--seed", type=int, default=1, help="of all generators (default: %(default)s)")
    parser.add_argument("--brief", action="store_true", help="small sizes, to see that it works: claims need not hold")


def run(arguments: argparse.Namespace) -> int:
    """Write the page of a paper and its pictures."""
    if arguments.seed < 0:
        raise invalid("seed", arguments.seed, "0 or more")
    sizes = BRIEF if arguments.brief else Effort()
    effort = Effort(sizes.intervals, sizes.keys, sizes.adjustments, sizes.checks, arguments.seed)
    out: Path = arguments.out
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PenstockError(
            "PENSTOCK_CANNOT_WRITE", f"--out is {out}, which cannot be made: {error}. Name a directory."
        ) from error
    written = out / f"{arguments.paper}.md"
    check_file("out", written)
    paper, begin = PAPERS[arguments.paper], time.monotonic()
    steps = Steps(paper.steps)
    with steps.shown():
        found = paper.reproduce(effort, steps.step)
    for experiment in found.experiments:
        if experiment.charts:
            picture.draw(experiment.charts, out / f"{experiment.name}.png")
    options = f" --seed {arguments.seed}" + (" --brief" if arguments.brief else "")
    command = f"penstock reproduce {arguments.paper} --out {out}{options}"
    written.write_text(page.page(found, command, machine.describe()))
    agree = sum(claim.holds for claim in found.claims)
    confirmed = sum(erratum.confirmed for erratum in found.errata)
    print(
        f"{written}: {agree} of {len(found.claims)} claims agree, {confirmed} of {len(found.errata)} errata confirmed, "
        f"in {time.monotonic() - begin:.1f} s"
    )
    return 0
