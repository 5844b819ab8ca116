"""Text of others, such as keys of a stream, on a terminal."""

import unicodedata
from typing import Any

_OBEYED = frozenset({"Cc", "Cf", "Cs"})
"""Categories of characters that a terminal obeys or hides: controls, formats, halves of a pair."""


def printable(text: str, keep: str = "") -> str:
    r"""Replace characters that a terminal would obey, or not show, by their escapes, such as ``\x1b``.

    Parameters
    ----------
    text
        From anywhere.
    keep
        Characters that stay as they are.

    Returns
    -------
    str
        Every other character is as it was.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c in keep or unicodedata.category(c) not in _OBEYED else _escaped(c) for c in text)


def printable_document(value: Any) -> Any:
    """Replace them in every text of a JSON document, names of fields included."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [printable_document(of) for of in value]
    if isinstance(value, dict):
        return {printable(name): printable_document(of) for name, of in value.items()}
    return value


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
