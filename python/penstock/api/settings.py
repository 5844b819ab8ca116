"""The settings of Penstock, read from the file that `make docs` generates from the JVM's registry."""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


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


@cache
def settings() -> tuple[Setting, ...]:
    """Return all settings."""
    text = files("penstock").joinpath("_configuration.json").read_text(encoding="utf-8")
    return tuple(Setting(**entry) for entry in json.loads(text)["settings"])


def default(name: str) -> str:
    """Return the default of a setting as text. ``name`` is its key without ``spark.penstock.``."""
    (found,) = (setting.default for setting in settings() if setting.option == f"penstock.{name}")
    return found
