"""Readers of the tables, and the evaluation of events: what counts as passed, failed, skipped and stale."""

from pathlib import Path
from typing import Any

import bed
import plan
import pytest
import summary
from plan import Exclusions, Mode, Suite

SUITE = "org.apache.spark.sql.streaming.ExampleSuite"


def event(kind: str, test: str | None = None, message: str | None = None) -> dict[str, Any]:
    """Return an event as SuiteLog.java writes it."""
    return {"event": kind, "suite": SUITE, "test": test, "ms": 2000, "message": message}


def judged(*events: dict[str, Any], excluded: tuple[str, ...] = ()) -> summary.Result:
    """Return the result of one suite."""
    exclusions = Exclusions({f"ExampleSuite#{test}": "a reason" for test in excluded})
    return summary.judge([SUITE], events, exclusions)[SUITE]


def test_a_complete_suite_is_good() -> None:
    result = judged(event("suite_start"), event("passed", "a"), event("ignored", "b"), event("suite_end"))
    assert (result.good, result.passed, result.failed, result.skipped, result.seconds) == (True, 1, 0, 1, 2.0)


def test_an_excluded_failure_is_skipped() -> None:
    result = judged(event("suite_start"), event("failed", "a", "m"), event("suite_end"), excluded=("a",))
    assert (result.good, result.failed, result.skipped) == (True, 0, 1)


def test_a_failure_that_is_not_excluded_fails_the_run() -> None:
    result = judged(event("suite_start"), event("failed", "a", "m"), event("suite_end"), excluded=("b",))
    assert (result.good, result.failed, result.failures) == (False, 1, {"a": "m"})


def test_an_excluded_test_that_passes_is_stale_and_fails_the_run() -> None:
    result = judged(event("suite_start"), event("passed", "a"), event("suite_end"), excluded=("a",))
    assert (result.good, result.passed, result.failed, result.stale) == (False, 0, 1, ["a"])


def test_an_excluded_test_that_races_may_pass_or_fail() -> None:
    exclusions = Exclusions({f"ExampleSuite#{test}": plan.RACES + "why" for test in "ab"})
    events = [event("suite_start"), event("passed", "a"), event("failed", "b", "m"), event("suite_end")]
    result = summary.judge([SUITE], events, exclusions)[SUITE]
    assert (result.good, result.passed, result.skipped) == (True, 1, 1)


@pytest.mark.parametrize(
    ("events", "state"),
    [
        ((), "not run"),
        ((event("suite_start"), event("passed", "a")), "crashed"),
        ((event("suite_start"), event("suite_killed", "a", "stack")), "killed"),
        ((event("suite_start"), event("suite_aborted", None, "boom")), "aborted"),
    ],
)
def test_a_suite_that_did_not_end_fails_the_run(events: tuple[dict[str, Any], ...], state: str) -> None:
    result = judged(*events)
    assert (result.state, result.good) == (state, False)
    assert result.failed > 0


def test_the_last_line_counts_tests() -> None:
    results = summary.judge(
        [SUITE],
        [event("suite_start"), event("passed", "a"), event("failed", "b", "m"), event("suite_end")],
        Exclusions({}),
    )
    assert summary.table(results).splitlines()[-1] == "1 passed, 1 failed, 0 skipped"


@pytest.mark.parametrize("line", ["ExampleSuite#a", "ExampleSuite#a\t ", "a\treason"])
def test_an_exclusion_without_suite_or_reason_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "exclusions.tsv"
    path.write_text(line + "\n")
    with pytest.raises(plan.TableError, match=r"exclusions\.tsv:1"):
        plan.read_exclusions(path)


def test_an_exclusion_may_apply_to_every_suite(tmp_path: Path) -> None:
    path = tmp_path / "exclusions.tsv"
    path.write_text("# heading\n*#a # b\tits reason\n")
    assert plan.read_exclusions(path).reason("ExampleSuite", "a # b") == "its reason"


def test_recording_keeps_headings_and_other_suites(tmp_path: Path) -> None:
    path = tmp_path / "suites.tsv"
    path.write_text("# suite\n\nASuite\tplugin\tci\t\t\t\nBSuite\tliterals\tall\t3\t2\t9\n")
    plan.record(path, {"ASuite": (5, 4, 12)})
    assert path.read_text() == "# suite\n\nASuite\tplugin\tci\t5\t4\t12\nBSuite\tliterals\tall\t3\t2\t9\n"
    assert plan.read_suites(path)[0] == Suite("ASuite", Mode.PLUGIN, True, 5, 4, 12)


def test_the_tables_of_this_folder_can_be_read() -> None:
    suites = plan.read_suites(bed.HERE / "suites.tsv")
    assert len({suite.name for suite in suites}) == len(suites)
    assert any(suite.ci for suite in suites)
    known = {suite.name for suite in suites} | {"*"}
    assert {name.split("#")[0] for name in plan.read_exclusions(bed.HERE / "exclusions.tsv").reasons} <= known
