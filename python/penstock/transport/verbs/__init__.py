"""RDMA verbs: the receiver's network card reads data from the sender's memory."""

from penstock.transport.verbs.transport import Verbs

__all__ = ["Verbs"]
