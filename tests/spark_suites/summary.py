"""Judges the events of a run: which tests passed, failed as expected, failed, or pass though they are excluded."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import plan
from plan import Exclusions


@dataclass
class Result:
    """What one suite did.

    Attributes
    ----------
    state
        "complete", or why it is not: "not run", "crashed", "killed" (time limit), "aborted".
    passed, skipped
        Tests that passed, and tests that were excluded, canceled or ignored.
    failures
        Tests that failed and may not, with their messages.
    stale
        Excluded tests that passed.
    seconds
        Of the whole suite.
    """

    state: str = "not run"
    passed: int = 0
    skipped: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    stale: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        """Complete, without failures and without stale exclusions."""
        return self.state == "complete" and not self.failures and not self.stale

    @property
    def failed(self) -> int:
        """Failures, stale exclusions, and one for a suite that never began or whose JVM crashed."""
        return len(self.failures) + len(self.stale) + (self.state in ("not run", "crashed"))

    @property
    def tests(self) -> int:
        """Tests that ran or were skipped."""
        return self.passed + len(self.failures) + len(self.stale) + self.skipped


def judge(suites: Iterable[str], events: Iterable[dict[str, Any]], exclusions: Exclusions) -> dict[str, Result]:
    """One result per suite, by full class name.

    Parameters
    ----------
    suites
        Full class names of what should have run.
    events
        As SuiteLog.java writes them.
    exclusions
        Tests that may fail.
    """
    results = {suite: Result() for suite in suites}
    for event in events:
        name = event["suite"]
        if name not in results:
            continue
        result, kind = results[name], event["event"]
        if kind == "suite_start":
            result.state = "crashed"  # until its end is seen
        elif kind in ("suite_end", "suite_aborted", "suite_killed"):
            result.state = {"suite_end": "complete"}.get(kind, kind.removeprefix("suite_"))
            result.seconds = event["ms"] / 1000
            if kind != "suite_end":
                result.failures[f"({result.state}) {event['test'] or ''}"] = event["message"]
        else:
            _count(result, kind, event, exclusions.reason(name.rpartition(".")[2], event["test"] or ""))
    return results


def _count(result: Result, kind: str, event: dict[str, Any], reason: str | None) -> None:
    if kind == "passed" and reason is not None and not reason.startswith(plan.RACES):
        result.stale.append(event["test"])
    elif kind == "passed":
        result.passed += 1
    elif kind == "failed" and reason is None:
        result.failures[event["test"]] = event["message"]
    elif kind in ("failed", "canceled", "ignored"):
        result.skipped += 1


def table(results: dict[str, Result]) -> str:
    """The results as text: a line per suite, what is wrong below it, and the counts in the last line."""
    lines = [f"{'suite':<62} {'tests':>5} {'passed':>6} {'failed':>6} {'skipped':>7} {'sec':>6}  state"]
    for name, r in results.items():
        lines.append(
            f"{name.rpartition('.')[2]:<62} {r.tests:>5} {r.passed:>6} {r.failed:>6} {r.skipped:>7} "
            f"{r.seconds:>6.0f}  {r.state}"
        )
        lines += [f"    FAILED {test}\n        {_first_line(message)}" for test, message in r.failures.items()]
        lines += [f"    STALE, excluded but passes: {test}" for test in r.stale]
    total = results.values()
    lines.append(
        f"{sum(r.passed for r in total)} passed, {sum(r.failed for r in total)} failed, "
        f"{sum(r.skipped for r in total)} skipped"
    )
    return "\n".join(lines)


def _first_line(message: str) -> str:
    return next((line.strip() for line in message.splitlines() if line.strip()), "")[:160]
