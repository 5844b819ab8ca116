"""The command `penstock bench`, and the benchmarks that need no Spark."""

import argparse
import json

import pytest
from penstock.cli import bench, main
from penstock.cli.bench import plan

pytestmark = pytest.mark.slow


def test_a_benchmark_must_be_named(capsys):
    assert main(["bench"]) != 0
    assert "No benchmark was named" in capsys.readouterr().err


def arguments(*words):
    parser = argparse.ArgumentParser()
    bench.add_arguments(parser)
    return parser.parse_args(words)


def test_options_have_defaults_per_benchmark():
    assert plan(arguments("barrier")).cores == 16
    assert plan(arguments("barrier", "--cost")).name == "barrier-cost"
    assert plan(arguments("hotkey")).rounds == 200
    chosen = plan(arguments("overhead", "--rounds", "3", "--warm-up", "0", "--file-manager", "local"))
    assert (chosen.rounds, chosen.warm_up, chosen.file_managers) == (3, 0, "local")


def test_an_unknown_benchmark_is_refused(capsys):
    with pytest.raises(SystemExit) as exit_info:
        main(["bench", "nonsense"])
    assert exit_info.value.code == 2
    assert "overhead" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["json", "markdown", "samples"])
def test_an_unwritable_file_is_reported_before_anything_is_measured(option, tmp_path, capsys):
    place = tmp_path / "no" / "folder"
    assert main(["bench", "plan", f"--{option}", str(place)]) == 2
    assert f"--{option} is {place}, which cannot be written" in capsys.readouterr().err


def test_a_missing_checkpoint_folder_is_reported_before_anything_is_measured(tmp_path, capsys):
    place = tmp_path / "no" / "folder"
    assert main(["bench", "plan", "--checkpoints", str(place)]) == 2
    assert f"--checkpoints is {place}, which is not a folder" in capsys.readouterr().err


def test_planners_are_measured_without_spark(tmp_path):
    result = tmp_path / "plan.json"
    main(["bench", "plan", "--keys", "2000", "--rounds", "2", "--warm-up", "0", "--json", str(result)])
    written = json.loads(result.read_text())
    assert written["spark"] is None
    assert written["command"] == "penstock bench plan --rounds 2 --warm-up 0 --keys 2000 --json=plan.json"
    cases = {c["case"]: c for c in written["cases"]}
    # For some seeds a few keys limit the balance; the plan is always within the bound of the theorem.
    assert cases["mixed, theta 0.08, 2000 keys: imbalance"]["p90"] < 1.4
    assert cases["compact, theta 0.08, 2000 keys: time"]["n"] == 2


@pytest.mark.parametrize(("name", "lines"), [("cores", 6), ("refine", 1)])
def test_core_and_shard_planners_are_measured(name, lines, tmp_path):
    result = tmp_path / "result.json"
    main(["bench", name, "--rounds", "2", "--warm-up", "0", "--json", str(result)])
    written = json.loads(result.read_text())
    assert len(written["targets"]) == lines
    assert all(t["value"] is not None for t in written["targets"])
