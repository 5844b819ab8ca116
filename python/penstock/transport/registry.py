"""The registry of transports. `io.penstock.transport.Transports` is its counterpart on the JVM."""

from collections.abc import Mapping

from penstock.transport.channel import Transport
from penstock.transport.local import Local
from penstock.transport.mpi import Mpi
from penstock.transport.tcp import Tcp
from penstock.transport.verbs import Verbs

TRANSPORTS: Mapping[str, type[Transport]] = {made.name: made for made in (Local, Verbs, Mpi, Tcp)}
"""All transports by name, the best first. Sidecars try those that both offer in this order."""
FALLBACK = Tcp.name
"""Name of the transport that every sidecar offers."""
