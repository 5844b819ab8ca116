"""Options of the command line."""

from penstock.api.errors import PenstockError


def invalid(option: str, value: object, allowed: str) -> PenstockError:
    """Create the error for an option whose value is not allowed.

    Parameters
    ----------
    option
        Name of the option, without dashes.
    value
        Value that was given.
    allowed
        Description of the allowed values.
    """
    return PenstockError("PENSTOCK_INVALID_SETTING", f"--{option} is {value}; allowed: {allowed}.")
