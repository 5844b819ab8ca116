"""RDMA verbs: data are read out of the sender's memory by the receiver's card."""

from penstock.transport.verbs.transport import Verbs

__all__ = ["Verbs"]
