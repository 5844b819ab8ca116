"""MPI between processes that were started one by one, and may die one by one."""

from penstock.transport.mpi.transport import Mpi

__all__ = ["Mpi"]
