"""Options of the command line."""

from penstock.api.errors import PenstockError


def invalid(option: str, value: object, allowed: str) -> PenstockError:
    """Make the error for an option whose value is not allowed.

    Parameters
    ----------
    option
        Its name, without dashes.
    value
        That was given.
    allowed
        What is, in words.
    """
    return PenstockError("PENSTOCK_INVALID_SETTING", f"--{option} is {value}; allowed: {allowed}.")
