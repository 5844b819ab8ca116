"""Evaluates the events of a run: which tests passed, failed as expected, failed, or passed although excluded."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import plan
from plan import Exclusions


@dataclass
class Result:
    """Result of one suite.

    Attributes
    ----------
    state
        "complete", "not run", "crashed", "killed" (by the time limit), or "aborted".
    passed, skipped
        Number of tests that passed, and of tests that were excluded, canceled or ignored.
    failures
        Tests that failed and are not excluded, with their messages.
    stale
        Excluded tests that passed.
    seconds
        Duration of the suite.
    """

    state: str = "not run"
    passed: int = 0
    skipped: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    stale: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        """Whether the suite is complete, without failures and without stale exclusions."""
        return self.state == "complete" and not self.failures and not self.stale

    @property
    def failed(self) -> int:
        """Number of failures and stale exclusions, plus one for a suite that did not run or whose JVM crashed."""
        return len(self.failures) + len(self.stale) + (self.state in ("not run", "crashed"))

    @property
    def tests(self) -> int:
        """Number of tests that ran or were skipped."""
        return self.passed + len(self.failures) + len(self.stale) + self.skipped


def judge(suites: Iterable[str], events: Iterable[dict[str, Any]], exclusions: Exclusions) -> dict[str, Result]:
    """Returns one result per suite, by full class name.

    Parameters
    ----------
    suites
        Full class names of the suites that should have run.
    events
        Events that SuiteLog.java writes.
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
            result.state = "crashed"  # until the end of the suite is found
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
    """Returns the results as text: a line per suite, followed by its problems, and the counts in the last line."""
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
