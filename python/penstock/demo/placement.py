"""What it is worth on a question's data to place keys, by counting: where nothing runs, nothing else disturbs."""

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
    "hindsight": "once, knowing all that will come",
    "mixed": "again after every batch, by what it has shown",
    "hybrid": "at the barrier of every batch, by its own rows",
}


@dataclass(frozen=True)
class Placement:
    """A way to place keys on tasks.

    Parameters
    ----------
    policy
        Its name, as `penstock simulate` knows it.
    words
        How, and when, keys are placed.
    of_perfect
        Throughput over that of perfect balance.
    """

    policy: str
    words: str
    of_perfect: float


def placements(question: Question, streams: Mapping[str, pa.Table]) -> list[Placement]:
    """Compare ways to place the keys of a question's data on 8 tasks, in batches of the question's interval.

    With what `penstock simulate` has where nothing is said.
    """
    trace = of_table(question.trace(streams), Columns(TIME, "key", "cost"), Path(question.file))
    setting = Setting(trace.hashes, TASKS, total=trace.cost_by_key)
    batches = list(trace.batches(question.interval.total_seconds()))
    return [
        Placement(name, words, simulate(batches, policy(name, setting), lambda: 0).of_perfect)
        for name, words in _WORDS.items()
    ]


def sentence(question: Question, found: list[Placement]) -> str:
    """Tell what was found."""
    each = ", ".join(f"{of.words} {of.of_perfect:.0%}" for of in found)
    hours = question.interval.total_seconds() / 3600
    return (
        f"By counting, on {TASKS} tasks in batches of {hours:.2g} h of these data's time: throughput over that of "
        f"perfect balance, with keys placed {each}."
    )
