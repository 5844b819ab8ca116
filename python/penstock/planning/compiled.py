"""Compiles the loops of planners to machine code."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile a function of numbers and arrays on its first call, and cache the result on disk.

    Floating-point sums keep their written order, so that plans do not depend on the processor.
    """
    return cast("Function", numba.njit(cache=True, nogil=True)(function))
