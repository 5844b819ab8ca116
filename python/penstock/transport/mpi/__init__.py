"""MPI between processes that start and may die independently of each other."""

from penstock.transport.mpi.transport import Mpi

__all__ = ["Mpi"]
