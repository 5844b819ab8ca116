"""Finds and checks the RDMA device of this host."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.transport.errors import TransportError

PORT = 1
_GIDS = Path("/sys/class/infiniband")
_IPV4 = "0000:0000:0000:0000:0000:ffff:"
_NO_GID = "0000:0000:0000:0000:0000:0000:0000:0000"


@dataclass(frozen=True)
class Device:
    """An open device.

    Parameters
    ----------
    context
        Device context of ``pyverbs``.
    enums
        Module with the constants of ``pyverbs``, whose name depends on the version.
    gid_index
        Index of the address that peers use.
    mtu
        MTU of the port, as a constant of ``pyverbs``.
    """

    context: Any
    enums: Any
    gid_index: int
    mtu: int

    @property
    def gid(self) -> str:
        """Address of the port."""
        return str(self.context.query_gid(PORT, self.gid_index).gid)


def name() -> str:
    """Return the name of the first device.

    Raises
    ------
    TransportError
        ``PENSTOCK_NO_VERBS``: there is no device, or no library for it.
    """
    try:
        from pyverbs.device import get_device_list  # noqa: PLC0415
        from pyverbs.pyverbs_error import PyverbsRDMAError  # noqa: PLC0415
    except ImportError as error:
        raise _unusable(f"pyverbs cannot be loaded ({error})") from None
    try:
        devices: list[str] = [device.name.decode() for device in get_device_list()]
    except PyverbsRDMAError as error:
        # Without support in the kernel, this is an error instead of an empty list.
        raise _unusable(f"this host does not support RDMA ({error})") from None
    if not devices:
        raise _unusable("this host has no RDMA device")
    return devices[0]


def open_device() -> Device:
    """Open the first device.

    Raises
    ------
    TransportError
        ``PENSTOCK_NO_VERBS``: there is no usable device.
    """
    found = name()
    from pyverbs.device import Context  # noqa: PLC0415
    from pyverbs.pyverbs_error import PyverbsError  # noqa: PLC0415

    try:
        import pyverbs.enums as enums  # noqa: PLC0415, PLR0402
    except ImportError:
        import pyverbs.libibverbs_enums as enums  # noqa: PLC0415
    try:
        context = Context(name=found)
        port = context.query_port(PORT)
    except PyverbsError as error:
        raise _unusable(f"{found} cannot be opened ({error})") from None
    if port.state != enums.IBV_PORT_ACTIVE:
        raise _unusable(f"port {PORT} of {found} is not active")
    return Device(context, enums, _gid_index(found), int(port.active_mtu))


def _gid_index(device: str) -> int:
    """Choose the first address based on IPv4, which every RoCE 2 network has, or else the first address."""
    files = sorted((_GIDS / device / "ports" / str(PORT) / "gids").iterdir(), key=lambda file: int(file.name))
    gids = {}
    for file in files:
        try:
            gids[int(file.name)] = file.read_text().strip()
        except OSError:
            # Unused indexes cannot be read.
            continue
    taken = [index for index, gid in gids.items() if gid != _NO_GID]
    if not taken:
        raise _unusable(f"port {PORT} of {device} has no address")
    return next((index for index in taken if gids[index].startswith(_IPV4)), taken[0])


def _unusable(why: str) -> TransportError:
    return TransportError(
        "PENSTOCK_NO_VERBS",
        f"the transport verbs needs pyverbs and an RDMA device, but {why}: "
        "install Debian's python3-pyverbs or your distribution's, or leave spark.penstock.transport=auto",
    )
