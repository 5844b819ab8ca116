"""What an experiment found: claims of the paper beside our figures, and curves."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from penstock.charts.chart import Chart
from penstock.reproduction.effort import Effort


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


@dataclass(frozen=True)
class Paper:
    """What of a paper can be run again.

    Parameters
    ----------
    title
        Authors, title, and where it was published.
    experiments
        Functions that run them, in the order of the paper.
    errata
        Computes all of them.
    left_out
        Figures and tables that are not run again, and why.
    """

    title: str
    experiments: Sequence[Callable[[Effort], Experiment]]
    errata: Callable[[Effort], Sequence[Erratum]]
    left_out: Sequence[tuple[str, str]] = ()

    @property
    def steps(self) -> Sequence[str]:
        """Names of the parts that `reproduce` runs one after the other."""
        return [*(run.__name__.replace("_", " ") for run in self.experiments), "errata"]

    def reproduce(
        self, effort: Effort, step: Callable[[], AbstractContextManager[object]] = nullcontext
    ) -> Reproduction:
        """Run everything again.

        Parameters
        ----------
        step
            Gives what is around each of `steps`.
        """
        experiments = []
        for run in self.experiments:
            with step():
                experiments.append(run(effort))
        with step():
            errata = self.errata(effort)
        return Reproduction(self.title, experiments, errata, self.left_out)
