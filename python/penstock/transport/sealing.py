"""Encryption of slices with AES-256-GCM. Each direction of each connection has a key of its own."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

from penstock.transport.errors import PeerBrokenError, TransportError
from penstock.transport.handshake import Agreed

SEAL_BYTES = 16


class Seal:
    """Encryption of one direction of a connection.

    Parameters
    ----------
    secret
        Secret of the application.
    agreed
        Result of the handshake.
    direction
        `CONNECTING` for data from the side that connected, `ACCEPTING` for data from the other side.

    Raises
    ------
    TransportError
        ``PENSTOCK_NO_ENCRYPTION``: the package ``cryptography`` is missing.
    """

    def __init__(self, secret: bytes, agreed: Agreed, direction: bytes) -> None:
        self._cipher = _aes_gcm()(_key(secret, agreed, direction))

    def close(self, number: int, header: bytes, data: memoryview) -> bytes:
        """Encrypt the data of a slice, and authenticate its header, which stays readable."""
        sealed: bytes = self._cipher.encrypt(_nonce(number), data, header)
        return sealed

    def open(self, number: int, header: bytes, sealed: memoryview) -> bytes:
        """Decrypt the data of a slice.

        Raises
        ------
        PeerBrokenError
            Data or header differ from what the peer sent.
        """
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415

        try:
            data: bytes = self._cipher.decrypt(_nonce(number), sealed, header)
        except InvalidTag:
            raise PeerBrokenError(f"slice {number} was changed on its way from the peer") from None
        return data


CONNECTING = b"connecting"
ACCEPTING = b"accepting"


def check_available() -> None:
    """Check that slices can be encrypted here.

    Raises
    ------
    TransportError
        ``PENSTOCK_NO_ENCRYPTION``: the package ``cryptography`` is missing.
    """
    _aes_gcm()


def _aes_gcm() -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415
    except ImportError:
        raise TransportError(
            "PENSTOCK_NO_ENCRYPTION",
            "connections must be encrypted, but the Python package cryptography is missing: run pip install "
            "'penstock[encryption]' where executors run",
        ) from None
    return AESGCM


def _key(secret: bytes, agreed: Agreed, direction: bytes) -> bytes:
    # HKDF (RFC 5869) with SHA-256, one block.
    salt = hashlib.sha256(agreed.transcript).digest()
    extracted = hmac.digest(salt, secret, "sha256")
    return hmac.digest(extracted, b"penstock " + direction + b"\x01", "sha256")


def _nonce(number: int) -> bytes:
    return number.to_bytes(12, "big")
