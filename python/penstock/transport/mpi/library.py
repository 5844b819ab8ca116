"""The MPI library of this process: found, judged and started once."""

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
"""After which the library gives up a connection."""
EAGER_BYTES = 2 * SLICE_BYTES
"""Below which data go without a question whether there is room: its peer waits for every slice, and has room for it."""


@functools.cache
def mpi() -> Any:
    """Give the module ``mpi4py.MPI``, started.

    Only MPICH 3.4 with its device ch3 is known to survive the death of a process that it is connected to; others end
    this process, too, or never return.

    Raises
    ------
    TransportError
        ``PENSTOCK_NO_MPI``: it is missing, or is another.
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
        raise _unusable("it does not serve several threads")
    MPI.COMM_WORLD.Set_errhandler(MPI.ERRORS_RETURN)
    MPI.COMM_SELF.Set_errhandler(MPI.ERRORS_RETURN)
    return MPI


def _unusable(why: str) -> TransportError:
    return TransportError(
        "PENSTOCK_NO_MPI",
        f"the transport mpi needs mpi4py on MPICH 3.4, which survives the death of a peer, and {why}: "
        "install penstock[mpi] for this Python, or leave spark.penstock.transport=auto",
    )
