"""Check the files and folders that a command writes."""

import argparse
from pathlib import Path

from penstock.api.errors import PenstockError


def check_writable(arguments: argparse.Namespace, *options: str) -> None:
    """Check that files can be written, so that a command fails before it does any work. Creates no files.

    Parameters
    ----------
    arguments
        Parsed arguments of the command.
    options
        Names of the options that name a file. An option that was not given has the value None.

    Raises
    ------
    PenstockError
        ``PENSTOCK_CANNOT_WRITE`` for the first file that cannot be written.
    """
    for option in options:
        path: Path | None = getattr(arguments, option)
        if path is not None:
            check_file(option, path)


def check_folder(option: str, path: Path | None) -> None:
    """Raise an error if the folder of an option does not exist. ``path`` is None if the option was not given."""
    if path is not None and not path.is_dir():
        raise PenstockError(
            "PENSTOCK_CANNOT_WRITE", f"--{option} is {path}, which is not a folder. Name an existing folder."
        )


def check_file(option: str, path: Path) -> None:
    """Raise an error if a file cannot be written. ``option`` names the file, or the folder that contains it."""
    existed = path.exists()
    try:
        with path.open("ab"):
            pass
    except OSError as error:
        raise PenstockError(
            "PENSTOCK_CANNOT_WRITE",
            f"--{option} is {path}, which cannot be written: {error.strerror}. Name a file in an existing folder.",
        ) from error
    if not existed:
        path.unlink()
