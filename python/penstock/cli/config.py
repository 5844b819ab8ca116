"""List the settings."""

import argparse

from penstock.api.settings import Setting, settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("key", nargs="?", default="", help="list only settings whose key contains this text")


def run(arguments: argparse.Namespace) -> int:
    """Print settings. The exit status is 1 if none matches."""
    found = [s for s in settings() if arguments.key in s.key]
    print("\n\n".join(describe(s) for s in found) if found else f"no setting has a key that contains {arguments.key!r}")
    return 0 if found else 1


def describe(setting: Setting) -> str:
    """Describe a setting in a few lines of text."""
    unit = "" if setting.unit == "-" else f" {setting.unit}"
    return (
        f"{setting.key} = {setting.default}{unit}\n"
        f"  allowed: {setting.allowed}\n"
        f"  set by: {setting.scope}; takes effect: {setting.effect}; since {setting.since}\n"
        f"  {setting.meaning}"
    )
