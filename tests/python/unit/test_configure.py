"""What `penstock.configure` does to a builder, without starting Spark."""

import sys
from pathlib import Path

import penstock
import pyspark
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.api import configure as module
from penstock.api.configure import _with
from penstock.api.jars import jar_for
from penstock.api.queries import PLUGIN
from pyspark import SparkContext
from pyspark.sql import SparkSession


@pytest.fixture
def jars(tmp_path, monkeypatch):
    """Return a folder with jars for two versions of Spark. The environment shows no running Spark."""
    minor = ".".join(pyspark.__version__.split(".")[:2])
    for name in (minor, "9.9"):
        (tmp_path / f"penstock-spark-{name}_2.13-0.1.0.jar").touch()
    monkeypatch.setattr(module, "jar_for", lambda version: jar_for(version, tmp_path))
    for variable in ("PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "SPARK_REMOTE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    return tmp_path


def error_class(action):
    with pytest.raises(penstock.PenstockError) as caught:
        action()
    assert str(caught.value).startswith(f"[{caught.value.error_class}] ")
    return caught.value.error_class


def test_plugin_and_jar_are_set(jars):
    builder = SparkSession.builder
    assert penstock.configure(builder) is builder
    assert builder._options["spark.plugins"] == PLUGIN
    assert Path(builder._options["spark.jars"]) == jar_for(pyspark.__version__, jars)


def test_settings_of_the_builder_are_kept(jars):
    builder = SparkSession.builder.config("spark.plugins", "a.B").config("spark.jars", "x.jar")
    penstock.configure(builder)
    assert builder._options["spark.plugins"] == f"a.B,{PLUGIN}"
    assert builder._options["spark.jars"].startswith("x.jar,")


DRIVER_PYTHON = "spark.pyspark.driver.python"


def test_the_planner_sidecar_runs_with_the_python_of_the_application(jars, monkeypatch):
    """It may not be the first on the path, as in a virtual environment that is not activated."""
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    for builder in (SparkSession.builder, SparkSession.builder.config("spark.penstock.python", "auto")):
        assert penstock.configure(builder)._options[DRIVER_PYTHON] == sys.executable


@pytest.mark.parametrize("key", [DRIVER_PYTHON, "spark.pyspark.python", "spark.penstock.python"])
def test_a_python_that_the_builder_names_is_kept(jars, monkeypatch, key):
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    options = penstock.configure(SparkSession.builder.config(key, "python4"))._options
    assert options[key] == "python4"
    assert options.get(DRIVER_PYTHON) in (None, "python4")


@pytest.mark.parametrize("name", ["PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"])
def test_a_python_that_the_environment_names_is_kept(jars, monkeypatch, name):
    monkeypatch.setenv(name, "python4")
    assert DRIVER_PYTHON not in penstock.configure(SparkSession.builder)._options


def test_configuring_twice_equals_configuring_once(jars):
    builder = penstock.configure(SparkSession.builder)
    once = dict(builder._options)
    assert penstock.configure(builder)._options == once


@pytest.mark.parametrize("argument", [None, "local", SparkSession, SparkSession.Builder, object()])
def test_other_arguments_are_refused(jars, argument):
    assert error_class(lambda: penstock.configure(argument)) == "PENSTOCK_INVALID_BUILDER"


@pytest.mark.parametrize(
    ("remote", "remedy"),
    [
        (
            "sc://localhost",
            f"The plugin must run in the Connect server: start the server with --conf spark.plugins={PLUGIN}",
        ),
        (
            "local[2]",
            f'in the background for local[2]. Configure the server with .config("spark.plugins", "{PLUGIN}")',
        ),
    ],
)
def test_connect_clients_are_told_to_configure_the_server(jars, monkeypatch, remote, remedy):
    builder = SparkSession.builder.config("spark.remote", remote)
    assert error_class(lambda: penstock.configure(builder)) == "PENSTOCK_INVALID_BUILDER"
    with pytest.raises(penstock.PenstockError) as caught:
        penstock.configure(builder)
    assert remedy in caught.value.detail
    monkeypatch.setenv("SPARK_REMOTE", remote)
    with pytest.raises(penstock.PenstockError) as caught:
        penstock.configure(SparkSession.builder)
    assert remedy in caught.value.detail


def test_a_running_application_is_refused(jars, monkeypatch):
    monkeypatch.setattr(SparkContext, "_active_spark_context", object())
    assert error_class(lambda: penstock.configure(SparkSession.builder)) == "PENSTOCK_SESSION_RUNNING"


@pytest.mark.parametrize("arguments", ["--jars a.jar pyspark-shell", "--conf spark.jars=a.jar pyspark-shell"])
def test_jars_that_the_environment_sets_are_refused(jars, monkeypatch, arguments):
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
    assert error_class(lambda: penstock.configure(SparkSession.builder)) == "PENSTOCK_CLASS_PATH"


def test_an_unsupported_spark_is_refused(jars, monkeypatch):
    monkeypatch.setattr(pyspark, "__version__", "4.1.0")
    builder = SparkSession.builder
    assert error_class(lambda: penstock.configure(builder)) == "PENSTOCK_UNSUPPORTED_SPARK"
    assert builder._options == {}


def test_the_jar_for_the_minor_version_is_selected(jars):
    assert jar_for("9.9.7", jars).name == "penstock-spark-9.9_2.13-0.1.0.jar"
    assert error_class(lambda: jar_for("9.90.0", jars)) == "PENSTOCK_UNSUPPORTED_SPARK"
    assert error_class(lambda: jar_for("9.9.0", jars / "nowhere")) == "PENSTOCK_JAR_NOT_FOUND"


@given(st.lists(st.text("abc.", min_size=1), unique=True), st.text("abc.", min_size=1))
def test_an_entry_is_added_to_a_list_only_once(present, added):
    entries = _with(added, ",".join(present)).split(",")
    assert entries[: len(present)] == present
    assert entries.count(added) == 1
    assert len(entries) == len(present) + (added not in present)
