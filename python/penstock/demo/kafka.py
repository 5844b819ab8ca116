"""The Kafka broker through which the demonstration can replay its data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from penstock.api.errors import PenstockError
from penstock.demo.broker import broker


@dataclass(frozen=True)
class Kafka:
    """A Kafka broker and the connector with which Spark reads from it.

    Parameters
    ----------
    address
        Address of the broker, ``HOST:PORT``.
    connector
        Jars of Spark's Kafka connector.
    """

    address: str
    connector: Sequence[Path]


@contextmanager
def kafka(address: str | None, jars: Path, work: Path) -> Iterator[Kafka]:
    """Use a running broker, or start one for the duration of the context.

    Parameters
    ----------
    address
        Address of a running broker. If it is None or empty, a broker is started.
    jars
        Folder with two subfolders of jars: ``broker`` and ``connector``.
    work
        Folder in which a broker that is started creates its own folder.

    Raises
    ------
    PenstockError
        ``PENSTOCK_KAFKA`` if jars or the Python client are missing, or the broker does not start or does not answer.
    """
    try:
        from penstock.workloads.feeds.kafka import require_broker  # noqa: PLC0415, only Kafka needs its client
    except ModuleNotFoundError as e:
        raise PenstockError(
            "PENSTOCK_KAFKA", f"--kafka needs the Python package {e.name}. Run `pip install 'penstock[kafka]'`."
        ) from e
    connector = _jars(jars / "connector")
    started = nullcontext(address) if address else broker(_jars(jars / "broker"), work / "broker")
    with started as broker_address:
        require_broker(broker_address)
        yield Kafka(broker_address, connector)


def _jars(folder: Path) -> list[Path]:
    found = sorted(folder.glob("*.jar"))
    if not found:
        raise PenstockError(
            "PENSTOCK_KAFKA",
            f"{folder} has no jars. Run `make kafka-jars` in a checkout of the project, or set --kafka-jars to the "
            "folder that it wrote.",
        )
    return found
