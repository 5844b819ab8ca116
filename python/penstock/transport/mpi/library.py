"""Finds, checks and initializes the MPI library of this process, once."""

from __future__ import annotations

import functools
import os
import re
from typing import Any

from penstock.transport.errors import TransportError
from penstock.transport.mpi import process_manager
from penstock.transport.slices import SLICE_BYTES

KNOWN = re.compile(r"MPICH Version:\s*3\.4.*MPICH Device:\s*ch3", re.DOTALL)
CONNECT_S = 5
"""Time in seconds after which the library gives up a connection attempt."""
EAGER_BYTES = 2 * SLICE_BYTES
"""Smaller messages are sent without asking for space: the receiver waits for every slice, and has space for it."""


@functools.cache
def mpi() -> Any:
    """Return the initialized module ``mpi4py.MPI``.

    Only MPICH 3.4 with its device ch3 is known to survive the death of a connected process. Other libraries end this
    process, too, or never return.

    Raises
    ------
    TransportError
        ``PENSTOCK_NO_MPI``: the library is missing, or is a different one.
    """
    os.environ.setdefault("MPIR_CVAR_CH3_COMM_CONNECT_TIMEOUT", str(CONNECT_S))
    os.environ.setdefault("MPIR_CVAR_CH3_EAGER_MAX_MSG_SIZE", str(EAGER_BYTES))
    try:
        import mpi4py  # noqa: PLC0415

        mpi4py.rc.initialize = False
        mpi4py.rc.finalize = False
        from mpi4py import MPI  # noqa: PLC0415
    except (ImportError, RuntimeError) as error:
        raise _unusable(f"it cannot be loaded ({error})") from None
    version = MPI.Get_library_version()
    if not KNOWN.match(version):
        raise _unusable("it is " + " ".join(version.split()[:4]))
    try:
        process_manager.start()
        provided = MPI.Init_thread(MPI.THREAD_MULTIPLE)
    except (MPI.Exception, OSError) as error:
        raise _unusable(f"it did not start ({error})") from None
    if provided != MPI.THREAD_MULTIPLE:
        raise _unusable("it does not support several threads")
    MPI.COMM_WORLD.Set_errhandler(MPI.ERRORS_RETURN)
    MPI.COMM_SELF.Set_errhandler(MPI.ERRORS_RETURN)
    return MPI


def _unusable(why: str) -> TransportError:
    return TransportError(
        "PENSTOCK_NO_MPI",
        f"the transport mpi needs mpi4py on MPICH 3.4, which survives the death of a peer, but {why}: "
        "install penstock[mpi] for this Python, or leave spark.penstock.transport=auto",
    )
