"""Simulate ways to place the keys of a question's data. A simulation is free of the noise of a real run."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from penstock.planning.policies import Setting, policy
from penstock.planning.simulation import simulate
from penstock.workloads.questions import Question
from penstock.workloads.questions.question import TIME
from penstock.workloads.trace import Columns, of_table

TASKS = 8
_WORDS = {
    "static": "by hash, as Spark does",
    "hindsight": "once, knowing all future rows",
    "mixed": "again after every batch, by the rows of that batch",
    "hybrid": "at the barrier of every batch, by its own rows",
}


@dataclass(frozen=True)
class Placement:
    """A way to place keys on tasks.

    Parameters
    ----------
    policy
        Name of the policy in `penstock simulate`.
    words
        Description of how and when keys are placed.
    of_perfect
        Throughput over that at perfect balance.
    """

    policy: str
    words: str
    of_perfect: float


def placements(question: Question, streams: Mapping[str, pa.Table]) -> list[Placement]:
    """Compare ways to place the keys of a question's data on 8 tasks, in batches of the question's interval.

    The settings are the defaults of `penstock simulate`.
    """
    trace = of_table(question.trace(streams), Columns(TIME, "key", "cost"), Path(question.file))
    setting = Setting(trace.hashes, TASKS, total=trace.cost_by_key)
    batches = list(trace.batches(question.interval.total_seconds()))
    return [
        Placement(name, words, simulate(batches, policy(name, setting), lambda: 0).of_perfect)
        for name, words in _WORDS.items()
    ]


def sentence(question: Question, found: list[Placement]) -> str:
    """Return the result as a sentence."""
    each = ", ".join(f"{placement.words} {placement.of_perfect:.0%}" for placement in found)
    hours = question.interval.total_seconds() / 3600
    return (
        f"Simulated on {TASKS} tasks, in batches of {hours:.2g} h of event time: throughput over that at perfect "
        f"balance, with keys placed {each}."
    )
