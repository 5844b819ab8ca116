"""Policies applied to traces: `penstock simulate`."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from penstock import cli
from penstock.api.errors import PenstockError
from penstock.api.settings import default
from penstock.planning import shard_policies
from penstock.planning.load import imbalance, loads
from penstock.planning.policies import POLICIES, Batch, Setting, policy
from penstock.planning.simulation import simulate
from penstock.planning.spark_hash import hash_longs
from penstock.workloads.trace import Columns, read

KEYS, TASKS = 400, 8


def hashes():
    return hash_longs(np.arange(KEYS))


def batches(count, skew, moving):
    """Yield rows of equal cost whose keys follow Zipf. With `moving`, the hot keys change with every batch."""
    random = np.random.default_rng(5)
    weight = np.arange(1, KEYS + 1) ** -skew
    order = np.arange(KEYS)
    for _ in range(count):
        key = order[random.choice(KEYS, 5000, p=weight / weight.sum())]
        yield Batch(key, np.ones(len(key)), np.ones(KEYS))
        if moving:
            order = random.permutation(order)


def simulated(name, skew=0.85, moving=False, shards=128):
    setting = Setting(hashes(), TASKS, shards)
    return simulate(batches(12, skew, moving), policy(name, setting), lambda: 0)


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_every_policy_places_every_row_once(name):
    setting = Setting(hashes(), TASKS, total=np.ones(KEYS))
    made = policy(name, setting)
    for batch in batches(4, 0.85, True):
        load = made.loads(batch)
        assert load.shape == (TASKS,)
        assert load.sum() == pytest.approx(len(batch.key))
        made.plan(batch)


def test_the_policy_static_places_by_plain_sparks_hash():
    batch = next(batches(1, 0.85, False))
    expected = loads(np.mod(hashes(), TASKS).astype(np.int32)[batch.key], batch.cost, TASKS)
    assert policy("static", Setting(hashes(), TASKS)).loads(batch).tolist() == expected.tolist()


def test_hindsight_is_one_placement_for_the_sum_of_all_batches():
    all_batches = list(batches(12, 0.85, False))
    total = sum(batch.cost_by_key for batch in all_batches)
    setting = Setting(hashes(), TASKS, total=total)
    made = policy("hindsight", setting)
    placed = sum(made.loads(batch) for batch in all_batches)
    assert imbalance(placed) < 1.005
    result = simulate(all_batches, policy("hindsight", setting), lambda: 0)
    assert simulated("static").of_perfect < 0.9 < result.of_perfect
    assert max(result.migrated) == 0
    with pytest.raises(ValueError, match="hindsight needs"):
        policy("hindsight", Setting(hashes(), TASKS))


@pytest.mark.parametrize("name", [*shard_policies.POLICIES, "readj"])
def test_a_stable_load_is_balanced_after_two_batches(name):
    result = simulated(name)
    hashed = simulated("static").imbalance
    assert result.imbalance[0] == pytest.approx(hashed[0], rel=0.2)
    # Each batch draws new rows, so a few hundredths are chance.
    assert max(result.imbalance[2:]) < 1.25 < min(hashed)
    assert max(result.migrated) > 0


def test_only_late_binding_balances_a_moving_load_in_the_same_batch():
    hybrid, refine, mixed = (simulated(name, moving=True) for name in ("hybrid", "refine", "mixed"))
    assert max(hybrid.imbalance) < 1.1
    assert np.mean(refine.imbalance) > 1.2
    assert np.mean(mixed.imbalance) > 1.2
    assert hybrid.of_perfect > 0.95 > refine.of_perfect
    assert simulated("ideal", moving=True).of_perfect == 1.0


def test_a_key_that_is_heavy_for_its_shard_is_pinned():
    # With 4 shards for 8 tasks, hot keys must be pinned.
    hybrid = simulated("hybrid", skew=0.5, shards=4)
    assert hybrid.imbalance[0] > 1.5
    assert hybrid.table[-1] > 0


@pytest.mark.parametrize("executors", [4, 8])
def test_shards_move_between_executors_if_binding_cannot_help(executors):
    setting = Setting(hashes(), TASKS, shards=128, executors=executors)
    result = simulate(batches(12, 0.85, False), policy("hybrid", setting), lambda: 0)
    alone = simulated("hybrid")
    assert result.imbalance[0] > 1.2
    # Each batch draws new rows, so a few hundredths are chance.
    assert max(result.imbalance[2:]) < 1.25
    assert sum(result.migrated) > sum(alone.migrated)


def write(path, columns):
    table = pa.table(columns)
    (pa.csv.write_csv if path.suffix == ".csv" else pa.parquet.write_table)(table, path)
    return path


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_trace_is_cut_into_batches(suffix, tmp_path):
    path = write(
        tmp_path / f"t.{suffix}", {"at": [5, 6, 9, 30], "who": ["a", "b", "a", "c"], "ms": [1.0, 2.0, 3.0, 4.0]}
    )
    first, second = read(path, Columns("at", "who", "ms")).batches(10)
    assert (first.key.tolist(), first.cost.tolist(), first.memory.tolist()) == ([0, 1, 0], [1, 2, 3], [2, 1, 0])
    assert (second.key.tolist(), second.memory.tolist()) == ([2], [2, 1, 1])


def test_timestamps_keys_and_state_are_read(tmp_path):
    path = tmp_path / "t.parquet"
    stamps = pa.array([0, 1500], pa.timestamp("ms"))
    write(path, {"time": stamps, "key": pa.array([7, 7], pa.int32()), "size": [10, 30]})
    trace = read(path, Columns(state="size"))
    assert trace.time_s.tolist() == [0.0, 1.5]
    assert next(trace.batches(60)).memory.tolist() == [30]


BAD = {
    "no column key": ({"time": [1]}, "no column key (--key); its columns are time"),
    "an empty value": ({"time": [1, 2], "key": ["a", None]}, "column key is empty in 1 rows"),
    "unsorted times": ({"time": [1, 3, 2], "key": [1, 1, 1]}, "row 2 is earlier than the one before it"),
    "a missing time": ({"time": [1.0, float("nan")], "key": [1, 2]}, "row 1 has no time (time)"),
    "a time of the wrong type": ({"time": ["x"], "key": [1]}, "column time is of type string"),
    "a key of the wrong type": ({"time": [1], "key": [1.5]}, "column key is of type double"),
    "a negative cost": ({"time": [1], "key": [1], "cost": [-1]}, "column cost is -1.0 in row 0"),
    "a cost of the wrong type": (
        {"time": [1], "key": [1], "cost": ["x"]},
        "column cost is of type string, and must be a number",
    ),
}


@pytest.mark.parametrize("bad", sorted(BAD))
def test_invalid_traces_are_refused(bad, tmp_path):
    columns, message = BAD[bad]
    path = write(tmp_path / "t.parquet", columns)
    with pytest.raises(PenstockError) as caught:
        read(path, Columns(cost="cost" if "cost" in columns else None))
    assert caught.value.error_class == "PENSTOCK_BAD_TRACE"
    assert message in caught.value.detail


def test_files_that_are_not_traces_are_refused(tmp_path, capsys):
    assert cli.main(["simulate", str(tmp_path / "none.parquet")]) == 2
    assert "the file does not exist" in capsys.readouterr().err
    (tmp_path / "t.txt").write_text("time,key\n1,2\n")
    assert cli.main(["simulate", str(tmp_path / "t.txt")]) == 2
    assert "named .csv" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tasks", "0"], "--tasks is 0; allowed: 1 or more"),
        (["--executors", "3"], "--executors is 3; allowed: a divisor of --tasks, which is 8"),
        (["--theta", "1"], "--theta is 1.0; allowed: more than 1"),
        (["--interval", "0"], "--interval is 0.0; allowed: more than 0 seconds"),
        (["--policy", "static,best"], "--policy is best; allowed: static, hindsight, hybrid"),
    ],
)
def test_invalid_options_are_refused(options, message, tmp_path, capsys):
    path = write(tmp_path / "t.csv", {"time": [1], "key": [1]})
    assert cli.main(["simulate", str(path), *options]) == 2
    printed = capsys.readouterr().err
    assert "[PENSTOCK_INVALID_SETTING]" in printed
    assert message in printed


def test_the_command_prints_and_writes_results(tmp_path, capsys):
    random = np.random.default_rng(1)
    path = write(tmp_path / "t.csv", {"time": np.arange(3000), "key": random.zipf(1.5, 3000) % 100})
    result = tmp_path / "result.json"
    assert cli.main(["simulate", str(path), "--interval", "500", "--tasks", "4", "--json", str(result)]) == 0
    printed = capsys.readouterr().out
    assert "3,000 rows" in printed
    assert "6 batches, 4 tasks" in printed
    written = json.loads(result.read_text())
    assert list(written["policies"]) == ["static", "hindsight", "hybrid", "refine", "mixed", "ideal"]
    assert len(written["policies"]["static"]["imbalance"]) == 6
    assert written["policies"]["ideal"]["of_perfect"] == 1.0


def test_simulate_uses_the_default_settings_of_penstock(tmp_path, capsys):
    """Theta, shards and pinned keys are the defaults of the settings. The output names the values that were used."""
    path = write(tmp_path / "t.csv", {"time": np.arange(400), "key": np.arange(400) % 40})
    result = tmp_path / "result.json"
    assert cli.main(["simulate", str(path), "--policy", "hybrid", "--json", str(result)]) == 0
    shipped = {name: default(name) for name in ("shards", "theta", "pinned.max")}
    assert "hybrid as shipped: 256 shards, theta 1.003, up to 16 pinned keys" in capsys.readouterr().out
    counted = json.loads(result.read_text())["settings"]
    assert {name: str(counted[name]) for name in shipped} == shipped
    options = ["--theta", "1.2", "--pinned", "3"]
    assert cli.main(["simulate", str(path), "--policy", "hybrid", *options]) == 0
    assert "hybrid: 256 shards, theta 1.2, up to 3 pinned keys" in capsys.readouterr().out


def test_a_setting_without_arguments_has_the_defaults_of_penstock():
    setting = Setting(hashes(), TASKS)
    shipped = [str(value) for value in (setting.shards, setting.theta, setting.pinned)]
    assert shipped == [default(name) for name in ("shards", "theta", "pinned.max")]


def test_the_number_of_pinned_keys_is_limited(tmp_path):
    """With 4 shards for 8 tasks there is always a reason to pin another key."""
    random = np.random.default_rng(2)
    path = write(tmp_path / "t.csv", {"time": np.arange(4000), "key": random.integers(0, 60, 4000)})
    result = tmp_path / "result.json"

    def most(*options):
        given = ["--interval", "500", "--shards", "4", "--policy", "hybrid", "--json", str(result), *options]
        assert cli.main(["simulate", str(path), *given]) == 0
        return max(json.loads(result.read_text())["policies"]["hybrid"]["table"])

    assert most() == 16
    assert most("--pinned", "5") == 5
    assert most("--pinned", "0") == 0


def test_a_key_is_unpinned_as_late_as_in_a_query():
    """The pin planner is that of queries, so a key that is hot in every other batch keeps its shard."""
    keys = np.arange(KEYS)
    home = np.mod(hashes(), 128)
    neighbour = int(np.flatnonzero(home == home[0])[1])
    hot = np.repeat([0, neighbour], [2000, 400])
    made = policy("hybrid", Setting(hashes(), TASKS, shards=128))
    tables = []
    for number in range(8):
        key = np.concatenate([keys, hot]) if number % 2 == 0 else keys
        tables.append(made.plan(Batch(key, np.ones(len(key)), np.ones(KEYS))).table)
    assert min(tables) > 0


@pytest.mark.parametrize("option", ["--json", "--png"])
def test_an_unwritable_file_is_reported_before_the_simulation(option, tmp_path, capsys):
    """The trace does not exist either, but it is not opened before this check."""
    place = tmp_path / "no" / "such" / "folder"
    assert cli.main(["simulate", str(tmp_path / "none.csv"), option, str(place)]) == 2
    printed = capsys.readouterr().err
    assert "[PENSTOCK_CANNOT_WRITE]" in printed
    assert f"{option} is {place}" in printed


def test_a_failed_simulation_leaves_no_file(tmp_path):
    result = tmp_path / "result.json"
    assert cli.main(["simulate", str(tmp_path / "none.csv"), "--json", str(result)]) == 2
    assert not result.exists()


def test_progress_is_printed_for_each_policy(tmp_path, capsys):
    path = write(tmp_path / "t.csv", {"time": np.arange(100), "key": np.arange(100)})
    assert cli.main(["simulate", str(path), "--policy", "static,hybrid,ideal"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(",")[0] for line in lines] == ["static: 1 of 3", "hybrid: 2 of 3", "ideal: 3 of 3"]


def test_progress_is_drawn_as_a_bar_on_a_terminal(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    path = write(tmp_path / "t.csv", {"time": np.arange(100), "key": np.arange(100)})
    assert cli.main(["simulate", str(path), "--policy", "static,ideal"]) == 0
    drawn = capsys.readouterr().err
    assert "100%" in drawn
    assert "1 of 2" not in drawn


def test_a_trace_without_rows_is_accepted(tmp_path, capsys):
    path = write(tmp_path / "t.parquet", {"time": pa.array([], pa.int64()), "key": pa.array([], pa.string())})
    assert cli.main(["simulate", str(path)]) == 0
    assert "0 rows, 0 keys, 0 batches" in capsys.readouterr().out


def test_imbalance_is_that_of_the_busiest_task():
    result = simulated("static")
    load = policy("static", Setting(hashes(), TASKS)).loads(next(batches(1, 0.85, False)))
    assert result.imbalance[0] == imbalance(load)
    assert result.longest[0] == load.max()
