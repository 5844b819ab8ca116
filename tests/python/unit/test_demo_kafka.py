"""Errors of the demonstration if it cannot use Kafka."""

import sys
from pathlib import Path

import pytest
from penstock import cli
from penstock.workloads.feeds import kafka as feed

DATA = Path(__file__).parents[3] / "data"


def demo(*options):
    return cli.main(["demo", "--data", "nasa", "--folder", str(DATA), "--seconds", "5", *options])


@pytest.fixture
def connector(tmp_path):
    (tmp_path / "connector").mkdir()
    (tmp_path / "connector" / "connector.jar").touch()
    return ["--kafka-jars", str(tmp_path)]


@pytest.mark.parametrize("address", ["localhost", "localhost:port", "a,b:1", ":9092", "[::1]"])
def test_an_invalid_address_is_refused(address, capsys):
    assert demo(f"--kafka={address}") == 2
    assert f"--kafka is {address}; allowed: HOST:PORT, such as localhost:9092" in capsys.readouterr().err


@pytest.mark.parametrize("folder", ["connector", "broker"])
def test_missing_jars_are_reported_with_a_remedy(folder, tmp_path, connector, capsys):
    options = connector if folder == "broker" else ["--kafka-jars", str(tmp_path / "none")]
    assert demo("--kafka", *options) == 2
    error = capsys.readouterr().err
    assert f"{folder} has no jars. Run `make kafka-jars`" in error


def test_a_missing_client_library_is_reported_with_a_remedy(connector, monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, feed.__name__)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    assert demo("--kafka", *connector) == 2
    assert "pip install 'penstock[kafka]'" in capsys.readouterr().err


def test_a_broker_that_does_not_answer_is_reported(connector, monkeypatch, capsys):
    monkeypatch.setattr(feed, "LIMIT_S", 0.5)
    assert demo("--kafka=127.0.0.1:9", *connector) == 2
    error = capsys.readouterr().err
    assert "The Kafka broker at 127.0.0.1:9 did not answer: " in error
    assert "Set --kafka to a broker that accepts clients" in error


def test_a_broker_that_cannot_start_is_reported(tmp_path, connector, capsys):
    (tmp_path / "broker").mkdir()
    (tmp_path / "broker" / "broker.jar").touch()
    assert demo("--kafka", *connector) == 2
    assert "The Kafka broker could not format its folder; its log:" in capsys.readouterr().err
