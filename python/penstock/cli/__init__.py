"""The command `penstock`.

Every module of this package whose name does not start with an underscore is a subcommand of that name. The first line
of its docstring is its help text, ``add_arguments(parser)`` declares its arguments, and ``run(arguments)`` returns its
exit status.
"""

import argparse
import pkgutil
import sys
from collections.abc import Sequence
from importlib import import_module

from penstock import __version__
from penstock.api.errors import PenstockError
from penstock.api.printable import printable

EXTRAS = {"matplotlib": "pictures"}
"""Extra of the package penstock that installs a missing package. The extra `pyspark` installs all others."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand.

    Parameters
    ----------
    arguments
        Command line without the program's name. The default is the command line of this process.

    Returns
    -------
    int
        Exit status. It is 2 after a :class:`~penstock.PenstockError`, whose message is printed.
    """
    parser = argparse.ArgumentParser(prog="penstock", description="Penstock's command line.")
    parser.add_argument("--version", action="version", version=f"penstock {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    given = sys.argv[1:] if arguments is None else arguments
    names = [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]
    # Import only the module of the requested command: importing all of them takes long.
    for name in given[:1] if given[:1] and given[0] in names else names:
        _add(commands, name)
    parsed = parser.parse_args(given)
    try:
        status: int = _run(parsed, given)
    except PenstockError as error:
        print(printable(str(error), keep="\n"), file=sys.stderr)
        return 2
    return status


def _run(parsed: argparse.Namespace, given: Sequence[str]) -> int:
    try:
        return int(parsed.run(parsed))
    except ModuleNotFoundError as error:
        # A package that only one option of the command needs is imported when the option is used.
        if _package(error) not in EXTRAS:
            raise
        return _refuse(given[0], _package(error))


def _add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str) -> None:
    """Add a subcommand. If a package that it needs is not installed, the subcommand is listed but fails when run."""
    try:
        module = import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        missing = _package(error)
        command = commands.add_parser(name, help=f"(not available: {missing} is not installed)")
        command.add_argument("arguments", nargs=argparse.REMAINDER)
        command.set_defaults(run=lambda _: _refuse(name, missing))
        return
    summary = (module.__doc__ or "").partition("\n")[0].rstrip(".")
    command = commands.add_parser(name, help=summary, description=module.__doc__)
    module.add_arguments(command)
    command.set_defaults(run=module.run)


def _package(error: ModuleNotFoundError) -> str:
    return (error.name or "").partition(".")[0]


def _refuse(command: str, package: str) -> int:
    extra = EXTRAS.get(package, "pyspark")
    raise PenstockError(
        "PENSTOCK_MISSING_PACKAGE",
        f"`penstock {command}` needs the package {package}, which is not installed. Run "
        f"`pip install 'penstock[{extra}]'`.",
    )
