"""Reproduce the papers' experiments that need only counting and simulation, and write a page with the results.

The page compares each claim of the paper with our figure, shows charts, and lists errata: places where the paper is
wrong or incomplete. Spark is not needed. With one core, fang takes about five minutes and elasticutor about one.
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
    parser.add_argument("paper", choices=PAPERS, help="paper whose experiments are run")
    parser.add_argument("--out", type=Path, required=True, metavar="DIRECTORY", help="folder for the page and pictures")
    parser.add_argument("--seed", type=int, default=1, help="seed of all random generators (default: %(default)s)")
    parser.add_argument(
        "--brief", action="store_true", help="run with small sizes as a quick test; claims may not hold then"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the experiments of a paper, and write its page and pictures."""
    if arguments.seed < 0:
        raise invalid("seed", arguments.seed, "0 or more")
    sizes = BRIEF if arguments.brief else Effort()
    effort = Effort(sizes.intervals, sizes.keys, sizes.adjustments, sizes.checks, arguments.seed)
    out: Path = arguments.out
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PenstockError(
            "PENSTOCK_CANNOT_WRITE", f"--out is {out}, which cannot be created: {error}. Name a writable directory."
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
