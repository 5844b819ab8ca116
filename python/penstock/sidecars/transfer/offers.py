"""Decides which transports an executor's sidecar offers, why others are missing, and which one two sidecars use."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.transport import sealing
from penstock.transport.channel import Listener, Transport
from penstock.transport.errors import TransportError
from penstock.transport.registry import FALLBACK, TRANSPORTS

AUTO = "auto"
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

    def routes(self, peer: Addresses) -> Iterator[tuple[str, str]]:
        """Iterate over name and address of each transport that reaches a peer, the best first."""
        for name in self.transports:
            if name in peer and (not TRANSPORTS[name].within_host or peer.get(HOST) == self.host):
                yield name, peer[name]


def offer(secret: bytes, bind: str, wanted: str, *, encrypted: bool, authenticated: bool = False) -> Offers:
    """Offer the wanted transports that are available, and always `FALLBACK`.

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
        Not even `FALLBACK` is available.
    """
    if encrypted:
        sealing.check_available()
    transports: dict[str, Transport] = {}
    listeners: dict[str, Listener] = {}
    missing: dict[str, str] = {}
    for name, registered in TRANSPORTS.items():
        if reason := _not_wanted(registered, wanted, encrypted=encrypted, authenticated=authenticated):
            missing[name] = reason
            continue
        try:
            made = registered.make(secret, bind, encrypted=encrypted)
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
    for name, registered in TRANSPORTS.items():
        try:
            registered.make(b"survey", "127.0.0.1", encrypted=False).listen().close()
            found[name] = ""
        except (TransportError, OSError) as error:
            found[name] = _why(error)
    return found


def _why(error: TransportError | OSError) -> str:
    return error.detail if isinstance(error, TransportError) else str(error)


def host() -> str:
    """Return an id that is equal for processes that reach each other's abstract sockets: boot, namespace and user."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}/{Path('/proc/self/ns/net').stat().st_ino}/{os.getuid()}"


def _not_wanted(registered: type[Transport], wanted: str, *, encrypted: bool, authenticated: bool) -> str:
    name = registered.name
    if encrypted and not registered.encrypts:
        return "communication between executors must be encrypted, which this transport does not support"
    if authenticated and registered.admits_strangers:
        return f"spark.authenticate is set, but {registered.admits_strangers}"
    if name in (wanted, FALLBACK):
        return ""
    if wanted != AUTO:
        return f"spark.penstock.transport={wanted}"
    if registered.only_by_name:
        return f"offered only with spark.penstock.transport={name}, because {registered.only_by_name}"
    return ""
