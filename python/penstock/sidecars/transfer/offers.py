"""Which transports an executor's sidecar offers to others, why not better ones, and which one two of them use."""

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
"""The order in which transports are tried between two that both offer them."""
FALLBACK = "tcp"
HOST = "host"
"""Among the addresses of a sidecar: processes that tell the same can use shared memory."""
Addresses = Mapping[str, str]


@dataclass(frozen=True)
class Offers:
    """What a sidecar can do.

    Parameters
    ----------
    transports
        By name, the best first.
    listeners
        Of each.
    missing
        Transports that it does not offer, and why.
    host
        See `HOST`.
    """

    transports: Mapping[str, Transport]
    listeners: Mapping[str, Listener]
    missing: Mapping[str, str] = field(default_factory=dict)
    host: str = ""

    @property
    def addresses(self) -> Addresses:
        """What others need to know to reach it."""
        return {HOST: self.host, **{name: listener.address for name, listener in self.listeners.items()}}

    def ways(self, peer: Addresses) -> Iterator[tuple[str, str]]:
        """Give name and address of each transport that reaches a peer, the best first."""
        for name in self.transports:
            if name in peer and (name != "local" or peer.get(HOST) == self.host):
                yield name, peer[name]


def offer(secret: bytes, bind: str, wanted: str, *, encrypted: bool, authenticated: bool = False) -> Offers:
    """Offer what is wanted and can be had, and TCP in any case.

    Parameters
    ----------
    secret
        Of the application.
    bind
        Address of this host that peers use.
    wanted
        ``auto``, or the name of a transport.
    encrypted
        Whether what leaves this process must be: a transport that cannot is not offered.
    authenticated
        Whether nobody may reach this process who does not know the secret: a transport whose library takes what anybody
        sends is not offered.

    Raises
    ------
    TransportError
        Not even TCP can be had.
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
    """Tell of each transport why it cannot be had here, nothing where it can. What libraries start is not stopped."""
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
    """Tell what processes have in common that reach each other's abstract sockets: boot, network namespace and user."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}/{Path('/proc/self/ns/net').stat().st_ino}/{os.getuid()}"


def _not_wanted(name: str, wanted: str, *, encrypted: bool, authenticated: bool) -> str:
    if encrypted and name != FALLBACK:
        return "what the executors tell each other must be encrypted, and it cannot do that"
    if authenticated and name == "mpi":
        return "spark.authenticate is set, and the port of an MPI library takes packets of anybody"
    if name in (wanted, FALLBACK):
        return ""
    if wanted != AUTO:
        return f"spark.penstock.transport={wanted}"
    if name == "mpi":
        return "only where spark.penstock.transport=mpi asks for it: over Ethernet it is no faster than tcp"
    return ""
