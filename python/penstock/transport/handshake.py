"""Handshake by which two peers verify that they belong to one application: `docs/PROTOCOL.md`, section 11.

Each side proves that it knows the application's secret without sending it. Encodes and decodes bytes, without I/O.
"""

from __future__ import annotations

import hmac
import os
import struct
from dataclasses import dataclass

from penstock.transport.errors import PeerBrokenError, PeerRefusedError

VERSION = 2
MAGIC = b"PSTT"
START = struct.Struct("<4sBBH")
NONCE_BYTES = 32
PROOF_BYTES = 32
HELLO_BYTES = START.size + NONCE_BYTES
ANSWER_BYTES = HELLO_BYTES + PROOF_BYTES
ENCRYPTED = 1


@dataclass(frozen=True)
class Agreed:
    """What both sides know after the handshake.

    Parameters
    ----------
    transcript
        All bytes of the handshake: equal on both sides, and different for each connection.
    encrypted
        Whether the following data are encrypted.
    """

    transcript: bytes
    encrypted: bool


class Connecting:
    """The side that connects: sends `hello`, then `proof`, then checks `ready`."""

    def __init__(self, secret: bytes, *, encrypted: bool) -> None:
        self._secret = secret
        self._encrypted = encrypted
        self.hello = _start(encrypted) + os.urandom(NONCE_BYTES)
        self._transcript = self.hello

    def proof(self, answer: bytes) -> bytes:
        """Check the peer's answer, and create the proof that the peer expects.

        Raises
        ------
        PeerBrokenError, PeerRefusedError
            The answer is invalid, or comes from an incompatible peer.
        """
        _check_start(answer, self._encrypted)
        transcript = self._transcript + answer[:HELLO_BYTES]
        _check(self._secret, b"answer", transcript, answer[HELLO_BYTES:])
        self._transcript += answer
        made = _prove(self._secret, b"proof", self._transcript)
        self._transcript += made
        return made

    def agree(self, ready: bytes) -> Agreed:
        """Check the peer's last message.

        Raises
        ------
        PeerRefusedError
            The message is wrong.
        """
        _check(self._secret, b"ready", self._transcript, ready)
        return Agreed(self._transcript, self._encrypted)


class Accepting:
    """The side that is connected to: answers `hello`, then checks the proof and sends `ready`."""

    def __init__(self, secret: bytes, *, encrypted: bool) -> None:
        self._secret = secret
        self._encrypted = encrypted
        self._transcript = b""

    def answer(self, hello: bytes) -> bytes:
        """Answer a peer's hello.

        Raises
        ------
        PeerBrokenError, PeerRefusedError
            The hello is invalid, or comes from an incompatible peer.
        """
        _check_start(hello, self._encrypted)
        own = _start(self._encrypted) + os.urandom(NONCE_BYTES)
        made = own + _prove(self._secret, b"answer", hello + own)
        self._transcript = hello + made
        return made

    def ready(self, proof: bytes) -> tuple[bytes, Agreed]:
        """Check the peer's proof; return the last message, and the result of the handshake.

        Raises
        ------
        PeerRefusedError
            The proof is wrong.
        """
        _check(self._secret, b"proof", self._transcript, proof)
        self._transcript += proof
        return _prove(self._secret, b"ready", self._transcript), Agreed(self._transcript, self._encrypted)


def _start(encrypted: bool) -> bytes:
    return START.pack(MAGIC, VERSION, ENCRYPTED if encrypted else 0, 0)


def _check_start(data: bytes, encrypted: bool) -> None:
    magic, version, flags, zero = START.unpack(data[: START.size])
    if magic != MAGIC or zero != 0 or flags & ~ENCRYPTED:
        raise PeerBrokenError(f"bytes {data[: START.size].hex()} are not the beginning of a handshake")
    if version != VERSION:
        raise PeerRefusedError(
            f"the peer has protocol version {version}, this process {VERSION}: use the same Penstock everywhere"
        )
    if bool(flags & ENCRYPTED) != encrypted:
        own, peer = ("encrypted", "not") if encrypted else ("not encrypted", "encrypted")
        raise PeerRefusedError(f"connections are {own} here, but {peer} at the peer: use the same settings for both")


def _prove(secret: bytes, what: bytes, transcript: bytes) -> bytes:
    return hmac.digest(secret, b"penstock " + what + b" " + transcript, "sha256")


def _check(secret: bytes, what: bytes, transcript: bytes, proof: bytes) -> None:
    if not hmac.compare_digest(_prove(secret, what, transcript), proof):
        raise PeerRefusedError("the peer does not know this application's secret")
