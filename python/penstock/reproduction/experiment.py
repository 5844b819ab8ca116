"""What an experiment found: claims of the paper beside our figures, and curves."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.charts.chart import Chart


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper that a number decides.

    Parameters
    ----------
    statement
        What the paper says.
    paper, ours
        Its figure and ours, with units.
    holds
        Whether ours agrees with the sentence.
    """

    statement: str
    paper: str
    ours: str
    holds: bool


@dataclass(frozen=True)
class Experiment:
    """An experiment that was run again.

    Parameters
    ----------
    name
        Of its picture's file.
    title
        The figure or table of the paper, and what it shows.
    method
        What was run.
    claims
        What the paper says of it.
    charts
        Side by side in one picture; none where there is nothing to draw.
    remark
        Why ours differs, or what follows.
    """

    name: str
    title: str
    method: str
    claims: Sequence[Claim]
    charts: Sequence[Chart] = ()
    remark: str = ""


@dataclass(frozen=True)
class Erratum:
    """A place of a paper that is wrong or silent, with a case that shows it.

    Parameters
    ----------
    place
        Where in the paper.
    wrong
        What is wrong or missing there.
    right
        What holds instead, and what Penstock does.
    shown
        The case, computed just now.
    confirmed
        Whether the case shows it.
    """

    place: str
    wrong: str
    right: str
    shown: str
    confirmed: bool


@dataclass(frozen=True)
class Reproduction:
    """All of a paper.

    Parameters
    ----------
    paper
        Authors, title, and where it was published.
    experiments, errata
        In the order of the paper.
    left_out
        Figures and tables that were not run again, and why.
    """

    paper: str
    experiments: Sequence[Experiment]
    errata: Sequence[Erratum]
    left_out: Sequence[tuple[str, str]] = field(default=())

    @property
    def claims(self) -> Sequence[Claim]:
        """Of all experiments."""
        return [claim for experiment in self.experiments for claim in experiment.claims]
