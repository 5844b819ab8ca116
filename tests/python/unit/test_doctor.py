"""Judgements about a machine: `penstock doctor`."""

import json
import os
import sys
from dataclasses import replace

import pytest
from penstock import cli
from penstock.diagnosis.judgement import PLUGIN, PROVIDER_KEY, TRANSPORT_KEY, State, judge
from penstock.diagnosis.machine import Machine, SidecarPython, look, read_defaults, sidecar_programs
from penstock.diagnosis.security import encryption_lacks, judge_security
from penstock.transport.registry import TRANSPORTS

GOOD = Machine(
    python="3.11.7",
    java='openjdk version "17.0.9" 2023-10-17',
    packages={"pyspark": "4.2.0", "numpy": "2.2.6", "numba": "0.68.1", "pyarrow": "25.0.1"},
    spark_home="/spark",
    spark="4.2.0",
    jars=("penstock-bridge-0.1.0.jar", "penstock-spark-4.2_2.13-0.1.0.jar"),
    bridge=True,
    defaults={"spark.plugins": PLUGIN, "spark.penstock.theta": "1.1"},
    defaults_file="/spark/conf/spark-defaults.conf",
    transports={"local": "", "tcp": ""},
    penstock="0.1.0",
    sidecars=(SidecarPython("driver", "python3", "0.1.0"), SidecarPython("executors", "/opt/python", "0.1.0")),
    own_python="/venv/bin/python",
    lacking={"Python operators": {}, "Spark Connect": {}},
)


def problems(machine):
    return [(j.what, j.state, j.found, j.remedy) for j in judge(machine) if j.state is not State.OK]


def test_a_healthy_machine_has_no_problems():
    assert problems(GOOD) == []
    assert "spark.penstock.theta = 1.1" in [j.found for j in judge(GOOD)]


@pytest.mark.parametrize(
    ("change", "what", "state", "remedy"),
    [
        ({"python": "3.9.18"}, "Python", State.WRONG, "3.10"),
        ({"java": None}, "Java", State.WRONG, "JAVA_HOME"),
        ({"java": 'java version "1.8.0_202"'}, "Java", State.WRONG, "Java 17"),
        ({"spark_home": None, "spark": None}, "Spark", State.WRONG, "Install PySpark"),
        ({"packages": {**GOOD.packages, "pyspark": "4.3.0"}}, "Spark", State.WRONG, "PySpark is 4.3.0"),
        ({"jars": ()}, "jar", State.WRONG, "make jar"),
        ({"jars": ("penstock-spark-4.3_2.13-0.1.0.jar",)}, "jar", State.WRONG, "Install one of these"),
        ({"defaults": {}}, "plugin", State.OFF, "penstock.configure"),
        ({"bridge": False}, "plugin", State.WRONG, "penstock jar"),
        ({"defaults": {**GOOD.defaults, PROVIDER_KEY: "a.b.C"}}, "state store", State.OFF, PROVIDER_KEY),
        ({"defaults": {**GOOD.defaults, "spark.penstock.teta": "1"}}, "setting", State.WRONG, "spark.penstock.theta"),
        (
            {"defaults": {**GOOD.defaults, "penstock.theta": "1.1"}},
            "setting",
            State.WRONG,
            "Write spark.penstock.theta.",
        ),
        ({"defaults": {**GOOD.defaults, "spark.penstock.mode": "off"}}, "setting", State.OFF, "observe"),
        ({"packages": {**GOOD.packages, "numba": None}}, "planning", State.OFF, "pip install numba"),
        ({"defaults": {**GOOD.defaults, TRANSPORT_KEY: "off"}}, "transports", State.OFF, "Set it to `auto`"),
        ({"transports": {"tcp": "", "verbs": "no device: plug one in"}}, "verbs", State.OFF, "plug one in"),
        (
            {"sidecars": (SidecarPython("driver", "/a/python", None, "No module named 'penstock'"),)},
            "driver's Python",
            State.OFF,
            "set spark.penstock.python to one that has it, such as /venv/bin/python",
        ),
        (
            {"lacking": {**GOOD.lacking, "Python operators": {"protobuf": "5.0 is too old"}}},
            "Python operators",
            State.OFF,
            "`/opt/python -m pip install protobuf`",
        ),
        (
            {"lacking": {**GOOD.lacking, "Spark Connect": {"grpcio": "", "zstandard": ""}}},
            "Spark Connect",
            State.OFF,
            "`/opt/python -m pip install grpcio zstandard`",
        ),
        (
            {"sidecars": (SidecarPython("executors", "/a/python", "0.0.9"),)},
            "executors' Python",
            State.OFF,
            "Install penstock 0.1.0 there",
        ),
        ({"socket_error": "AF_UNIX path too long"}, "Unix sockets", State.OFF, "TMPDIR"),
    ],
)
def test_each_problem_has_a_remedy(change, what, state, remedy):
    ((found_what, found_state, _, found_remedy),) = problems(replace(GOOD, **change))
    assert (found_what, found_state) == (what, state)
    assert remedy in found_remedy
    (judgement,) = (j for j in judge(replace(GOOD, **change)) if j.state is not State.OK)
    # OFF has a cost that is named; WRONG must be fixed.
    assert bool(judgement.costs) == (state is State.OFF)


def test_an_unsuitable_package_is_named_with_the_reason():
    lacking = {"Python operators": {"pandas": "", "protobuf": "5.0 is too old"}}
    assert problems(replace(GOOD, lacking=lacking))[0][2] == "/opt/python lacks pandas, protobuf (5.0 is too old)"


def test_defaults_are_read_as_spark_reads_them():
    text = "# a comment\n\nspark.plugins   io.penstock.PenstockPlugin\nspark.a=b c\n spark.d: e=f\nspark.g\n"
    assert read_defaults(text) == {"spark.plugins": PLUGIN, "spark.a": "b c", "spark.d": "e=f", "spark.g": ""}


@pytest.mark.parametrize(
    ("defaults", "environment", "driver", "executors"),
    [
        ({}, {}, "/venv/bin/python", "python3"),
        ({"spark.penstock.python": "auto"}, {"PYSPARK_PYTHON": "p"}, "p", "p"),
        ({}, {"PYSPARK_DRIVER_PYTHON": "d", "PYSPARK_PYTHON": "p"}, "d", "p"),
        ({"spark.pyspark.python": "s"}, {"PYSPARK_DRIVER_PYTHON": "d", "PYSPARK_PYTHON": "p"}, "s", "s"),
        ({"spark.pyspark.driver.python": "t", "spark.pyspark.python": "s"}, {}, "t", "s"),
        ({"spark.penstock.python": "own", "spark.pyspark.python": "s"}, {"PYSPARK_PYTHON": "p"}, "own", "own"),
    ],
)
def test_pythons_of_sidecars_are_chosen_as_in_the_jvm(defaults, environment, driver, executors):
    programs = sidecar_programs(defaults, environment, "/venv/bin/python")
    assert programs == {"driver": driver, "executors": executors}


def test_a_python_without_the_package_is_reported(monkeypatch, tmp_path):
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    (tmp_path / "spark-defaults.conf").write_text("spark.pyspark.python /no/such/python\n")
    found = look()
    assert [(s.beside, s.penstock) for s in found.sidecars] == [("driver", None), ("executors", None)]
    assert "No such file" in found.sidecars[0].error
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    (tmp_path / "spark-defaults.conf").write_text(f"spark.penstock.python {bare}\n")
    found = look()
    assert {s.error for s in found.sidecars} == {"ModuleNotFoundError: No module named 'penstock'"}
    # What this machine can do does not depend on that Python.
    assert found.transports["local"] == found.transports["tcp"] == ""
    assert set(found.lacking["Python operators"]) == {"pandas", "pyarrow", "protobuf"}
    assert "grpcio" in found.lacking["Spark Connect"]


def test_this_machine_can_run_the_tests(monkeypatch, tmp_path):
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    (tmp_path / "spark-defaults.conf").write_text("spark.penstock.shards 16\n")
    found = look()
    assert found.defaults == {"spark.penstock.shards": "16"}
    assert set(found.transports) == set(TRANSPORTS)
    assert found.transports["local"] == found.transports["tcp"] == ""
    assert [what for what, state, _, _ in problems(found) if state is State.WRONG] == []


def test_a_virtual_environment_need_not_be_activated(monkeypatch, tmp_path):
    """Another Python is first on the path. The driver uses the one that runs this, which the remedy suggests."""
    other = tmp_path / "python3"
    other.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    other.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "VIRTUAL_ENV"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    off = {what: remedy for what, state, _, remedy in problems(look()) if state is State.OFF}
    assert "driver's Python" not in off
    assert f"such as {sys.executable}" in off["executors' Python"]
    assert "tcp" not in off


def test_the_command_prints_problems_and_sets_the_status(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert cli.main(["doctor", "--json"]) == 0
    judgements = json.loads(capsys.readouterr().out)["judgements"]
    assert [j["state"] for j in judgements if j["what"] == "plugin"] == ["off"]
    (tmp_path / "spark-defaults.conf").write_text("spark.penstock.shard 16\n")
    assert cli.main(["doctor"]) == 1
    printed = capsys.readouterr().out
    assert f"{'':26}costs: sessions that do not call penstock.configure run plain Spark" in printed
    assert "WRONG  setting" in printed
    assert "Did you mean spark.penstock.shards?" in printed


PROTECTED = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.acls.enable": "true",
    "spark.penstock.report.keys": "false",
}


def test_a_protected_machine_has_no_security_problems():
    assert {j.state for j in judge_security(replace(GOOD, defaults=PROTECTED))} == {State.OK}
    assert not list(encryption_lacks(replace(GOOD, defaults=PROTECTED)))


@pytest.mark.parametrize(
    ("defaults", "error", "what", "state", "found"),
    [
        ({**PROTECTED, "spark.authenticate": "false"}, "", "authentication", State.OFF, "is not set"),
        ({**PROTECTED, "spark.network.crypto.enabled": "no"}, "", "encryption", State.OFF, "not encrypted"),
        (PROTECTED, "No module named 'cryptography'", "encryption", State.WRONG, "No module named 'cryptography'"),
        ({**PROTECTED, "spark.acls.enable": "false"}, "", "status", State.OFF, "is open"),
        ({**PROTECTED, "spark.penstock.report.keys": "true"}, "", "keys in logs", State.OFF, "by their values"),
        ({**PROTECTED, TRANSPORT_KEY: "mpi"}, "", "mpi", State.OFF, "refused"),
    ],
)
def test_each_missing_protection_is_reported(defaults, error, what, state, found):
    judged = judge_security(replace(GOOD, defaults=defaults, encryption_error=error))
    (wrong,) = [j for j in judged if j.state is not State.OK]
    assert (wrong.what, wrong.state) == (what, state)
    assert found in wrong.found
    assert wrong.remedy
    assert wrong.costs


def test_mpi_without_authentication_is_reported():
    judged = judge_security(replace(GOOD, defaults={TRANSPORT_KEY: "mpi"}))
    assert [j.found for j in judged if j.what == "mpi"] == [
        "listens on all addresses of the host, and accepts data from anybody"
    ]


def test_unavailable_encryption_is_reported_without_the_option_security(capsys, monkeypatch):
    machine = replace(GOOD, defaults={**GOOD.defaults, **PROTECTED}, encryption_error="No module named 'cryptography'")
    monkeypatch.setattr("penstock.cli.doctor.look", lambda: machine)
    assert cli.main(["doctor"]) == 1
    assert "pip install 'penstock[encryption]'" in capsys.readouterr().out
    monkeypatch.setattr("penstock.cli.doctor.look", lambda: GOOD)
    assert cli.main(["doctor", "--security"]) == 0
    assert "authentication" in capsys.readouterr().out
