"""Files that a command will write."""

import argparse
from pathlib import Path

from penstock.api.errors import PenstockError


def check_writable(arguments: argparse.Namespace, *options: str) -> None:
    """Refuse files that cannot be written before any work is done for them; leaves nothing behind.

    Parameters
    ----------
    arguments
        Of the command.
    options
        Names of its options whose values are files; None where one was not given.

    Raises
    ------
    PenstockError
        ``PENSTOCK_CANNOT_WRITE`` for the first that cannot be.
    """
    for option in options:
        path: Path | None = getattr(arguments, option)
        if path is not None:
            check_file(option, path)


def check_folder(option: str, path: Path | None) -> None:
    """Refuse a folder that is not there; None where it was not given."""
    if path is not None and not path.is_dir():
        raise PenstockError(
            "PENSTOCK_CANNOT_WRITE", f"--{option} is {path}, which is no folder. Name one that is there."
        )


def check_file(option: str, path: Path) -> None:
    """Refuse a file that cannot be written; an option named it, or the folder that it is in."""
    there = path.exists()
    try:
        with path.open("ab"):
            pass
    except OSError as error:
        raise PenstockError(
            "PENSTOCK_CANNOT_WRITE",
            f"--{option} is {path}, which cannot be written: {error.strerror}. Name a file in a folder that is there.",
        ) from error
    if not there:
        path.unlink()
