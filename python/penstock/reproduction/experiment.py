"""Results of reproduced experiments: claims of a paper with our figures, charts and errata."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from penstock.charts.chart import Chart
from penstock.reproduction.effort import Effort


@dataclass(frozen=True)
class Claim:
    """A statement of the paper that can be checked with a number.

    Parameters
    ----------
    statement
        Statement of the paper.
    paper, ours
        Figures of the paper and of this reproduction, with units.
    holds
        Whether our figure agrees with the statement.
    """

    statement: str
    paper: str
    ours: str
    holds: bool


@dataclass(frozen=True)
class Experiment:
    """A reproduced experiment.

    Parameters
    ----------
    name
        Name of the experiment and of its picture's file.
    title
        Figure or table of the paper, and what it shows.
    method
        Description of what was run.
    claims
        Claims of the paper about the experiment.
    charts
        Charts, which are drawn side by side in one picture. May be empty.
    remark
        Explanation of differences, or a conclusion.
    """

    name: str
    title: str
    method: str
    claims: Sequence[Claim]
    charts: Sequence[Chart] = ()
    remark: str = ""


@dataclass(frozen=True)
class Erratum:
    """An error or omission of a paper, with a case that demonstrates it.

    Parameters
    ----------
    place
        Section, theorem or algorithm of the paper.
    wrong
        What is wrong or missing.
    right
        What is correct, and what Penstock does.
    shown
        Description of the computed case.
    confirmed
        Whether the case demonstrates the error.
    """

    place: str
    wrong: str
    right: str
    shown: str
    confirmed: bool


@dataclass(frozen=True)
class Reproduction:
    """The reproduction of a paper.

    Parameters
    ----------
    paper
        Authors, title and place of publication.
    experiments, errata
        Results, in the order of the paper.
    left_out
        Figures and tables that were not reproduced, and why.
    """

    paper: str
    experiments: Sequence[Experiment]
    errata: Sequence[Erratum]
    left_out: Sequence[tuple[str, str]] = field(default=())

    @property
    def claims(self) -> Sequence[Claim]:
        """Claims of all experiments."""
        return [claim for experiment in self.experiments for claim in experiment.claims]


@dataclass(frozen=True)
class Paper:
    """The parts of a paper that can be reproduced.

    Parameters
    ----------
    title
        Authors, title and place of publication.
    experiments
        Functions that run the experiments, in the order of the paper.
    errata
        Function that computes all errata.
    left_out
        Figures and tables that are not reproduced, and why.
    """

    title: str
    experiments: Sequence[Callable[[Effort], Experiment]]
    errata: Callable[[Effort], Sequence[Erratum]]
    left_out: Sequence[tuple[str, str]] = ()

    @property
    def steps(self) -> Sequence[str]:
        """Names of the steps of `reproduce`, in order."""
        return [*(run.__name__.replace("_", " ") for run in self.experiments), "errata"]

    def reproduce(
        self, effort: Effort, step: Callable[[], AbstractContextManager[object]] = nullcontext
    ) -> Reproduction:
        """Run all experiments and compute all errata.

        Parameters
        ----------
        effort
            Sizes of the experiments.
        step
            Function that returns a context manager, which is entered for each of `steps`.
        """
        experiments = []
        for run in self.experiments:
            with step():
                experiments.append(run(effort))
        with step():
            errata = self.errata(effort)
        return Reproduction(self.title, experiments, errata, self.left_out)
