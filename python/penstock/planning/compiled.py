"""Compiles the loops of planners to machine code."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile a function of numbers and arrays when it is called first, and keep the result on disk.

    Sums keep the order in which they are written: plans do not depend on the processor.
    """
    return cast("Function", numba.njit(cache=True, nogil=True)(function))
