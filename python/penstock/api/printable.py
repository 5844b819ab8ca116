"""Make untrusted text, such as keys of a stream, safe to print on a terminal."""

import unicodedata
from typing import Any

_ESCAPED_CATEGORIES = frozenset({"Cc", "Cf", "Cs"})
"""Unicode categories of characters that a terminal interprets or does not show: control, format, surrogate."""


def printable(text: str, keep: str = "") -> str:
    r"""Escape characters that a terminal would interpret or not show, such as ``\x1b``.

    Parameters
    ----------
    text
        Text from any source.
    keep
        Characters that are not escaped.

    Returns
    -------
    str
        The text with these characters escaped and all others unchanged.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c in keep or unicodedata.category(c) not in _ESCAPED_CATEGORIES else _escaped(c) for c in text)


def printable_document(value: Any) -> Any:
    """Apply `printable` to every string of a JSON document, including field names."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [printable_document(element) for element in value]
    if isinstance(value, dict):
        return {printable(name): printable_document(field) for name, field in value.items()}
    return value


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
