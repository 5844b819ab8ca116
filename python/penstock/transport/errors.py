"""Errors between two peers. After any of them a channel is closed, except after a timeout before a message begins."""

from penstock.api.errors import PenstockError


class TransportError(PenstockError):
    """A message did not get through; the caller uses another way to get its data."""


class PeerLostError(TransportError):
    """The peer has closed the connection, or died."""

    def __init__(self, detail: str) -> None:
        super().__init__("PENSTOCK_PEER_LOST", detail)


class PeerTimeoutError(TransportError):
    """The peer missed a deadline."""

    def __init__(self, detail: str) -> None:
        super().__init__("PENSTOCK_PEER_LATE", detail)


class PeerRefusedError(TransportError):
    """The peer belongs to another application, has another version, or requires what this side does not have."""

    def __init__(self, detail: str) -> None:
        super().__init__("PENSTOCK_PEER_REFUSED", detail)


class PeerBrokenError(TransportError):
    """The peer sent invalid data."""

    def __init__(self, detail: str) -> None:
        super().__init__("PENSTOCK_PEER_BROKEN", detail)
