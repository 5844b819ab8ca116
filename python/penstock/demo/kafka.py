"""Kafka, where the demonstration's rows go through it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from penstock.api.errors import PenstockError
from penstock.demo.broker import broker


@dataclass(frozen=True)
class Kafka:
    """A broker, and how Spark reads from it.

    Parameters
    ----------
    address
        ``HOST:PORT``.
    connector
        Jars of Spark's connector.
    """

    address: str
    connector: Sequence[Path]


@contextmanager
def kafka(address: str | None, jars: Path, work: Path) -> Iterator[Kafka]:
    """Find a broker, or start one.

    Parameters
    ----------
    address
        Of one that runs; None starts one, until the end of the context.
    jars
        Folder with the jars of a ``broker`` and of Spark's ``connector``.
    work
        Folder in which the broker has its own.

    Raises
    ------
    PenstockError
        ``PENSTOCK_KAFKA`` where jars or the Python client are missing, or the broker does not start or not answer.
    """
    try:
        from penstock.workloads.feeds.kafka import require_broker  # noqa: PLC0415, only Kafka needs its client
    except ModuleNotFoundError as e:
        raise PenstockError(
            "PENSTOCK_KAFKA", f"--kafka needs the Python package {e.name}. Run `pip install 'penstock[kafka]'`."
        ) from e
    connector = _jars(jars / "connector")
    started = nullcontext(address) if address else broker(_jars(jars / "broker"), work / "broker")
    with started as answers_at:
        require_broker(answers_at)
        yield Kafka(answers_at, connector)


def _jars(folder: Path) -> list[Path]:
    found = sorted(folder.glob("*.jar"))
    if not found:
        raise PenstockError(
            "PENSTOCK_KAFKA",
            f"{folder} has no jars. Run `make kafka-jars` in a checkout of the project, or name the folder that it "
            "wrote with --kafka-jars.",
        )
    return found
