"""Reproduction of the papers' experiments: `penstock reproduce`."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock import cli
from penstock.charts import picture
from penstock.charts.chart import Chart, Line
from penstock.reproduction import hash_ring
from penstock.reproduction.effort import BRIEF, Effort
from penstock.reproduction.elasticutor import PAPER as ELASTICUTOR
from penstock.reproduction.elasticutor import assignment, executors
from penstock.reproduction.experiment import Claim, Erratum, Experiment, Reproduction
from penstock.reproduction.fang import PAPER as FANG
from penstock.reproduction.fang import example, intervals, plans, table
from penstock.reproduction.page import page

pytestmark = pytest.mark.slow

PUBLISHED = Path(__file__).parents[3] / "docs" / "reproduction"
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def found():
    return {"fang": FANG.reproduce(BRIEF), "elasticutor": ELASTICUTOR.reproduce(BRIEF)}


@pytest.mark.parametrize("paper", ["fang", "elasticutor"])
def test_a_page_has_every_claim_and_picture(paper, tmp_path, capsys):
    assert cli.main(["reproduce", paper, "--out", str(tmp_path), "--brief"]) == 0
    text = (tmp_path / f"{paper}.md").read_text()
    assert f"penstock reproduce {paper} --out {tmp_path} --seed 1 --brief" in text
    pictures = set(re.findall(r"\((\S+\.png)\)", text))
    assert pictures
    assert pictures == {file.name for file in tmp_path.glob("*.png")}
    assert all(file.read_bytes().startswith(PNG) for file in tmp_path.glob("*.png"))
    rows = re.findall(r"\| (agrees|\*\*differs\*\*) \|", text)
    agree = rows.count("agrees")
    printed = capsys.readouterr()
    assert re.search(rf"{agree} of {len(rows)} claims agree, .* errata confirmed, in [\d.]+ s$", printed.out.strip())
    # One line is printed after each experiment, and one after the errata.
    steps = [re.fullmatch(r"(.+): (\d+) of (\d+), [\d.]+ s", line) for line in printed.err.splitlines()]
    assert [int(step[2]) for step in steps] == list(range(1, int(steps[0][3]) + 1))
    assert len(steps) == text.count("\n## ") - 2 + 1
    assert steps[-1][1] == "errata"


@pytest.mark.parametrize("paper", ["fang", "elasticutor"])
def test_every_erratum_is_confirmed(found, paper):
    assert found[paper].errata
    assert [erratum.shown for erratum in found[paper].errata if not erratum.confirmed] == []


@pytest.mark.parametrize("paper", ["fang", "elasticutor"])
def test_the_published_page_has_the_claims_and_errata_of_the_code(found, paper):
    """Measured values come from the run that made the page, but claims and errata must be those of the code."""
    text = (PUBLISHED / f"{paper}.md").read_text()
    assert "--brief" not in text
    for experiment in found[paper].experiments:
        assert f"## {experiment.title}\n" in text
        assert not experiment.charts or (PUBLISHED / f"{experiment.name}.png").read_bytes().startswith(PNG)
        for claim in experiment.claims:
            assert f"| {claim.statement} | {claim.paper} |" in text
    for erratum in found[paper].errata:
        assert f"**{erratum.place}.** {erratum.wrong} {erratum.right}\n" in text
    assert all(f"| {what} | {why} |" in text for what, why in found[paper].left_out)


def test_results_that_do_not_depend_on_time_are_repeatable():
    for run in (example.worked, plans.tolerance, table.weight, executors.sizes, assignment.migration):
        assert without_times(run(BRIEF)) == without_times(run(BRIEF))


def without_times(experiment):
    charts = [chart for chart in experiment.charts if "ms" not in chart.y_label]
    return [c for c in experiment.claims if not c.ours.endswith(" ms")], charts, experiment.remark


def test_the_worked_example_agrees_with_the_paper():
    assert all(claim.holds for claim in example.worked(BRIEF).claims)


def test_min_table_moves_more_than_mixed():
    made = {name: intervals.play(intervals.Intervals(seed=3), planner, 5) for name, planner in planners().items()}
    assert intervals.migrated(made["MinTable"]) > 2 * intervals.migrated(made["Mixed"])
    assert all(plan.skew <= 1.08 + 1e-9 < plan.skew_before for plans_ in made.values() for plan in plans_)
    assert all(plan.table <= intervals.TABLE for plan in made["Mixed"])


def planners():
    return {"Mixed": intervals.mixed_planner(), "MinTable": intervals.min_table_planner()}


def test_the_state_of_a_window_is_the_cost_of_its_intervals():
    made = intervals.Intervals(keys=100, instances=4, window=2)
    costs = [made.costs.cost]
    for _ in range(3):
        made.advance(made.default)
        costs.append(made.costs.cost)
    statistics = made.statistics(made.default)
    assert statistics.memory.tolist() == (costs[-2] + costs[-1]).tolist()
    assert statistics.cost.tolist() == costs[-1].tolist()


@given(st.integers(1, 30), st.integers(0, 5))
def test_a_further_instance_takes_keys_and_no_other_keys_move(instances, seed):
    before, after = hash_ring.place(2_000, instances, seed), hash_ring.place(2_000, instances + 1, seed)
    moved = before != after
    assert (after[moved] == instances).all()
    assert before.min() >= 0
    assert before.max() < instances


def test_every_instance_has_about_an_equal_part_of_the_ring():
    part = np.bincount(hash_ring.place(100_000, 10, 1), minlength=10) / 10_000
    assert 0.5 < part.min() <= part.max() < 1.5


def test_one_executor_with_all_cores_is_never_worse_than_static():
    cost = executors.zipf(0.5, 1)
    group = executors.elastic(1, 4096)
    group.give_cores(cost)
    assert group.cores.tolist() == [executors.CORES]
    group.balance(cost)
    assert group.busiest(cost) < executors.static_busiest(cost)


def test_cores_follow_the_load():
    assert executors.proportional(np.array([1.0, 1.0, 6.0]), 8).tolist() == [1, 1, 6]
    assert executors.proportional(np.array([0.0, 0.0, 6.0]), 8).tolist() == [1, 1, 6]


def test_a_page_marks_differing_claims_and_unconfirmed_errata(tmp_path):
    claims = [Claim("it is fast", "1 s", "2 s", holds=False), Claim("it is right", "yes", "yes", holds=True)]
    chart = Chart("x", "y", [Line("a", [1, 2], [3, 4])])
    experiment = Experiment("picture", "Figure 1", "We ran it.", claims, [chart], "The disk.")
    erratum = Erratum("Eq. 1", "A sign is wrong.", "It is plus.", "1 + 1 = 2.", confirmed=False)
    text = page(
        Reproduction("A paper", [experiment], [erratum], [("Figure 2", "No data.")]), "the command", "a machine"
    )
    assert "1 of 2 claims agree" in text
    assert "| it is fast | 1 s | 2 s | **differs** |" in text
    assert "![Figure 1](picture.png)\n\nThe disk." in text
    assert "1 + 1 = 2. **Not confirmed.**" in text
    assert "| Figure 2 | No data. |" in text
    picture.draw([chart, chart], tmp_path / "picture.png")
    first = (tmp_path / "picture.png").read_bytes()
    picture.draw([chart, chart], tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes() == first


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "OUT", "--seed", "-1"], "--seed is -1; allowed: 0 or more"),
        (["--out", "FILE"], "which cannot be created"),
        (["--out", "TAKEN"], "taken/fang.md, which cannot be written: Is a directory"),
    ],
)
def test_invalid_options_are_refused(arguments, message, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    (tmp_path / "taken" / "fang.md").mkdir(parents=True)
    places = {name.upper(): str(tmp_path / name) for name in ("out", "file", "taken")}
    assert cli.main(["reproduce", "fang", *[places.get(a, a) for a in arguments]]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_default_size_is_that_of_the_papers():
    assert Effort().keys == 1_000_000
    assert Effort().intervals >= 20
