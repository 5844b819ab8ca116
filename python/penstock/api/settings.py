"""The configuration registry, as generated from the JVM side's (`make docs`): there is no second list."""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class Setting:
    """One setting; see ``docs/configuration.md`` for what the fields mean."""

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
    """All settings, by key."""
    text = files("penstock").joinpath("_configuration.json").read_text(encoding="utf-8")
    return tuple(Setting(**entry) for entry in json.loads(text)["settings"])


def default(name: str) -> str:
    """Give the default of a setting as text, by what follows ``spark.penstock.`` in its key."""
    (found,) = (setting.default for setting in settings() if setting.option == f"penstock.{name}")
    return found
