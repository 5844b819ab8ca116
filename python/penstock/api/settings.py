"""The settings and transports of Penstock, read from the file that `make docs` generates from the JVM's registries."""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Setting:
    """A setting. ``docs/configuration.md`` explains the fields."""

    key: str
    option: str
    type: str
    allowed: str
    default: str
    unit: str
    scope: str
    effect: str
    changeable: bool
    since: str
    meaning: str


@dataclass(frozen=True)
class TransportEntry:
    """What is known of a transport without loading it, as on systems where it does not run.

    The fields are those of `penstock.transport.channel.Transport`.
    """

    name: str
    number: int
    encrypts: bool
    admits_strangers: bool
    only_by_name: bool


@cache
def settings() -> tuple[Setting, ...]:
    """Return all settings."""
    return tuple(Setting(**entry) for entry in _registries()["settings"])


def transports() -> tuple[TransportEntry, ...]:
    """Return all transports between executors, the best first."""
    return tuple(TransportEntry(**entry) for entry in _registries()["transports"])


def planned_policies() -> tuple[str, ...]:
    """Return the policies by which the planner sidecar places shards between batches."""
    return tuple(_registries()["planned_policies"])


def default(name: str) -> str:
    """Return the default of a setting as text. ``name`` is its key without ``spark.penstock.``."""
    (found,) = (setting.default for setting in settings() if setting.option == f"penstock.{name}")
    return found


@cache
def _registries() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files("penstock").joinpath("_configuration.json").read_text(encoding="utf-8"))
    return found
