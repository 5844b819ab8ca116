"""The command `penstock`.

Every module of this package whose name does not start with an underscore is a subcommand of that name: its docstring's
first line is the help, ``add_arguments(parser)`` declares its arguments, ``run(arguments)`` returns the exit status.
"""

import argparse
import pkgutil
import sys
from collections.abc import Sequence
from importlib import import_module

from penstock.api.errors import PenstockError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand.

    Parameters
    ----------
    arguments
        Command line without the program's name; by default the process's.

    Returns
    -------
    int
        Exit status; 2 for a :class:`~penstock.PenstockError`, which is printed.
    """
    parser = argparse.ArgumentParser(prog="penstock", description="Penstock's command line.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for module_info in pkgutil.iter_modules(__path__):
        if not module_info.name.startswith("_"):
            module = import_module(f"{__name__}.{module_info.name}")
            summary = (module.__doc__ or "").partition("\n")[0].rstrip(".")
            command = commands.add_parser(module_info.name, help=summary, description=module.__doc__)
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    parsed = parser.parse_args(arguments)
    try:
        status: int = parsed.run(parsed)
    except PenstockError as error:
        print(error, file=sys.stderr)
        return 2
    return status
