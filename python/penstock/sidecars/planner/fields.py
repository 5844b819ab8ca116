"""Reads fields from the head of a frame; a missing or invalid field refuses the question."""

from typing import Any
from uuid import UUID


class RefusedError(Exception):
    """A question cannot be answered."""


def read_uuid(head: dict[str, Any]) -> UUID:
    """Read the run id of a query."""
    try:
        return UUID(head["run"])
    except (KeyError, ValueError, AttributeError, TypeError):
        raise RefusedError(f"run must be a uuid, found {head.get('run')!r}") from None


def read_int(head: dict[str, Any], name: str, least: int, most: int) -> int:
    """Read an integer within bounds."""
    value = head.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise RefusedError(f"{name} must be a whole number from {least} to {most}, found {value!r}")
    return value


def read_number(value: Any, name: str) -> float:
    """Read a number that is not negative."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1e15:  # noqa: PLR2004
        raise RefusedError(f"{name} must be a number from 0 to 10^15, found {value!r}")
    return float(value)


def read_bool(head: dict[str, Any], name: str) -> bool:
    """Read a boolean."""
    value = head.get(name)
    if not isinstance(value, bool):
        raise RefusedError(f"{name} must be true or false, found {value!r}")
    return value


def read_list(head: dict[str, Any], name: str, most: int) -> list[Any]:
    """Read a list with a limited number of elements."""
    value = head.get(name)
    if not isinstance(value, list):
        raise RefusedError(f"{name} must be a list, found {value!r}")
    if len(value) > most:
        raise RefusedError(f"{name} must have at most {most} elements, found {len(value)}")
    return value
