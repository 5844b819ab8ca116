"""Arguments that `penstock.status`, `decisions`, `set`, `pin` and `unpin` refuse without asking Spark."""

from __future__ import annotations

from typing import Any

import penstock
import pytest

CALLS = {
    "status": penstock.status,
    "decisions": penstock.decisions,
    "set": lambda query: penstock.set(query, "tasks", 2),
    "pin": lambda query: penstock.pin(query, "ORD"),
    "unpin": lambda query: penstock.unpin(query, "ORD"),
}


class Writer:
    def start(self) -> None: ...


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    ("query", "described", "hint"),
    [
        (None, "got NoneType None", "Pass what start() returned"),
        ("late flights", "got str 'late flights'", "Pass what start() returned"),
        (object(), "got an object of type object", "Pass what start() returned"),
        (Writer(), "got an object of type Writer", "Call start() first"),
    ],
)
def test_an_argument_that_is_not_a_query_is_refused(name: str, query: Any, described: str, hint: str) -> None:
    with pytest.raises(penstock.PenstockError) as caught:
        CALLS[name](query)
    assert caught.value.error_class == "PENSTOCK_NOT_A_QUERY"
    assert f"penstock.{name} needs a StreamingQuery" in caught.value.detail
    assert described in caught.value.detail
    assert hint in caught.value.detail


@pytest.mark.parametrize("name", [5, None, b"tasks"])
def test_the_name_of_a_setting_must_be_a_string(name: Any) -> None:
    with pytest.raises(penstock.PenstockError, match=f"got {type(name).__name__} ") as caught:
        penstock.set(object(), name, 2)  # type: ignore[arg-type]
    assert caught.value.error_class == "PENSTOCK_UNKNOWN_SETTING"


@pytest.mark.parametrize("value", [None, [16], {"tasks": 16}, b"16"])
def test_a_value_of_another_type_is_refused(value: Any) -> None:
    with pytest.raises(penstock.PenstockError, match=f"tasks was set to {type(value).__name__} ") as caught:
        penstock.set(object(), "tasks", value)  # type: ignore[arg-type]
    assert caught.value.error_class == "PENSTOCK_INVALID_SETTING"
