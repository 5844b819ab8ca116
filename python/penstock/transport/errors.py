"""What goes wrong between two peers. After any of these but a late start a channel is of no use, and is closed."""

from penstock.api.errors import PenstockError


class TransportError(PenstockError):
    """A message did not get through: who wanted it takes another way."""


class PeerLostError(TransportError):
    """The peer has closed the connection, or died."""

    def __init__(self, detail: str) -> None:
        super().__init__("PENSTOCK_PEER_LOST", detail)


class PeerTimeoutError(TransportError):
    """The peer took longer than it may."""

    def __init__(self, detail: str) -> None:
        super().__init__("PENSTOCK_PEER_LATE", detail)


class PeerRefusedError(TransportError):
    """The peer is another application's, of another version, or wants what this side does not have."""

    def __init__(self, detail: str) -> None:
        super().__init__("PENSTOCK_PEER_REFUSED", detail)


class PeerBrokenError(TransportError):
    """What came is nothing that a peer sends."""

    def __init__(self, detail: str) -> None:
        super().__init__("PENSTOCK_PEER_BROKEN", detail)
