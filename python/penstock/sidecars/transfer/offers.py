"""Decides which transports an executor's sidecar offers, why others are missing, and which one two sidecars use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.transport import sealing
from penstock.transport.channel import Listener, Transport
from penstock.transport.errors import TransportError
from penstock.transport.local import Local
from penstock.transport.mpi import Mpi
from penstock.transport.tcp import Tcp
from penstock.transport.verbs import Verbs

AUTO = "auto"
BEST_FIRST = ("local", "verbs", "mpi", "tcp")
"""Order in which transports are tried that both sidecars offer."""
FALLBACK = "tcp"
HOST = "host"
"""Key of a sidecar's addresses whose value is equal for processes that can share memory."""
Addresses = Mapping[str, str]


@dataclass(frozen=True)
class Offers:
    """Transports that a sidecar offers.

    Parameters
    ----------
    transports
        Offered transports by name, the best first.
    listeners
        Listener of each offered transport, by name.
    missing
        Reasons why other transports are not offered, by name.
    host
        Value of the address `HOST`.
    """

    transports: Mapping[str, Transport]
    listeners: Mapping[str, Listener]
    missing: Mapping[str, str] = field(default_factory=dict)
    host: str = ""

    @property
    def addresses(self) -> Addresses:
        """Addresses that other sidecars need to reach this one."""
        return {HOST: self.host, **{name: listener.address for name, listener in self.listeners.items()}}

    def ways(self, peer: Addresses) -> Iterator[tuple[str, str]]:
        """Iterate over name and address of each transport that reaches a peer, the best first."""
        for name in self.transports:
            if name in peer and (name != "local" or peer.get(HOST) == self.host):
                yield name, peer[name]


def offer(secret: bytes, bind: str, wanted: str, *, encrypted: bool, authenticated: bool = False) -> Offers:
    """Offer the wanted transports that are available, and always TCP.

    Parameters
    ----------
    secret
        Secret of the application.
    bind
        Address of this host that peers use.
    wanted
        ``auto``, or the name of a transport.
    encrypted
        Whether data that leave this process must be encrypted. Transports that cannot encrypt are not offered.
    authenticated
        Whether only peers that know the secret may reach this process. A transport whose library accepts packets from
        anybody is not offered.

    Raises
    ------
    TransportError
        Not even TCP is available.
    """
    if encrypted:
        sealing.check_available()
    make = _makers(secret, bind, encrypted=encrypted)
    transports: dict[str, Transport] = {}
    listeners: dict[str, Listener] = {}
    missing: dict[str, str] = {}
    for name in BEST_FIRST:
        if reason := _not_wanted(name, wanted, encrypted=encrypted, authenticated=authenticated):
            missing[name] = reason
            continue
        try:
            made = make[name]()
            listeners[name] = made.listen()
            transports[name] = made
        except (TransportError, OSError) as error:
            if name == FALLBACK:
                raise
            missing[name] = _why(error)
    return Offers(transports, listeners, missing, host())


def survey() -> dict[str, str]:
    """Return for each transport why it is unavailable here, or an empty string. Does not stop libraries it starts."""
    found = {}
    for name, make in _makers(b"survey", "127.0.0.1", encrypted=False).items():
        try:
            make().listen().close()
            found[name] = ""
        except (TransportError, OSError) as error:
            found[name] = _why(error)
    return found


def _why(error: TransportError | OSError) -> str:
    return error.detail if isinstance(error, TransportError) else str(error)


def _makers(secret: bytes, bind: str, *, encrypted: bool) -> dict[str, Callable[[], Transport]]:
    return {
        "local": lambda: Local(secret),
        "verbs": lambda: Verbs(secret, bind),
        "mpi": lambda: Mpi(secret, bind),
        "tcp": lambda: Tcp(secret, bind, encrypted),
    }


def host() -> str:
    """Return an id that is equal for processes that reach each other's abstract sockets: boot, namespace and user."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}/{Path('/proc/self/ns/net').stat().st_ino}/{os.getuid()}"


def _not_wanted(name: str, wanted: str, *, encrypted: bool, authenticated: bool) -> str:
    if encrypted and name != FALLBACK:
        return "communication between executors must be encrypted, which this transport does not support"
    if authenticated and name == "mpi":
        return "spark.authenticate is set, but the port of an MPI library accepts packets from anybody"
    if name in (wanted, FALLBACK):
        return ""
    if wanted != AUTO:
        return f"spark.penstock.transport={wanted}"
    if name == "mpi":
        return "offered only with spark.penstock.transport=mpi, because over Ethernet it is not faster than tcp"
    return ""
