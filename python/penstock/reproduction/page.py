"""Write the page of a reproduction, as Markdown."""

from collections.abc import Sequence

from penstock.reproduction.experiment import Claim, Erratum, Experiment, Reproduction

HEADING = "| what the paper says | paper | ours | |\n|---|---|---|---|"


def page(reproduction: Reproduction, command: str, machine: str) -> str:
    """Return the page of a reproduction.

    Parameters
    ----------
    reproduction
        Results to write.
    command
        Command that generates the page.
    machine
        Description of the machine on which times were measured.
    """
    agree = sum(claim.holds for claim in reproduction.claims)
    parts = [
        f"# {reproduction.paper}: run again",
        f"Made by `{command}` on {machine}. Times are of this run; everything else depends on the seed only.",
        f"{agree} of {len(reproduction.claims)} claims agree with ours. Where they do not it says why.",
        *[_experiment(experiment) for experiment in reproduction.experiments],
        "## Errata",
        "Where the paper is wrong or silent, what Penstock does instead, and a case that was computed with this page.",
        *[_erratum(erratum) for erratum in reproduction.errata],
        "## Not run again",
        "| | why |\n|---|---|\n" + "\n".join(f"| {what} | {why} |" for what, why in reproduction.left_out),
    ]
    return "\n\n".join(parts) + "\n"


def _experiment(experiment: Experiment) -> str:
    parts = [f"## {experiment.title}", experiment.method, _table(experiment.claims)]
    if experiment.charts:
        parts.append(f"![{experiment.title}]({experiment.name}.png)")
    if experiment.remark:
        parts.append(experiment.remark)
    return "\n\n".join(parts)


def _table(claims: Sequence[Claim]) -> str:
    rows = [
        f"| {claim.statement} | {claim.paper} | {claim.ours} | {'agrees' if claim.holds else '**differs**'} |"
        for claim in claims
    ]
    return "\n".join([HEADING, *rows])


def _erratum(erratum: Erratum) -> str:
    shown = erratum.shown if erratum.confirmed else f"{erratum.shown} **Not confirmed.**"
    return f"**{erratum.place}.** {erratum.wrong} {erratum.right}\n{shown}"
