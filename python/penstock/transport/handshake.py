"""How two peers find out that they are of one application: `docs/PROTOCOL.md`, section 11. Bytes in, bytes out.

Either side proves that it knows the application's secret, and neither sends it.
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
        All that was said, the same on both sides and never twice.
    encrypted
        Whether what follows is.
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
        """Check the peer's answer, and make the proof that it waits for.

        Raises
        ------
        PeerBrokenError, PeerRefusedError
            It is no answer, or that of a peer with which there is nothing to talk about.
        """
        _check_start(answer, self._encrypted)
        said = self._transcript + answer[:HELLO_BYTES]
        _check(self._secret, b"answer", said, answer[HELLO_BYTES:])
        self._transcript += answer
        made = _prove(self._secret, b"proof", self._transcript)
        self._transcript += made
        return made

    def agree(self, ready: bytes) -> Agreed:
        """Check the peer's last word.

        Raises
        ------
        PeerRefusedError
            It is another.
        """
        _check(self._secret, b"ready", self._transcript, ready)
        return Agreed(self._transcript, self._encrypted)


class Accepting:
    """The side that is connected to: answers `hello`, then checks the proof and says `ready`."""

    def __init__(self, secret: bytes, *, encrypted: bool) -> None:
        self._secret = secret
        self._encrypted = encrypted
        self._transcript = b""

    def answer(self, hello: bytes) -> bytes:
        """Answer a peer's hello.

        Raises
        ------
        PeerBrokenError, PeerRefusedError
            It is no hello, or that of a peer with which there is nothing to talk about.
        """
        _check_start(hello, self._encrypted)
        own = _start(self._encrypted) + os.urandom(NONCE_BYTES)
        made = own + _prove(self._secret, b"answer", hello + own)
        self._transcript = hello + made
        return made

    def ready(self, proof: bytes) -> tuple[bytes, Agreed]:
        """Check the peer's proof; gives the last word, and what was agreed.

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
        raise PeerBrokenError(f"no peer begins with {data[: START.size].hex()}")
    if version != VERSION:
        raise PeerRefusedError(f"the peer speaks version {version}, this one {VERSION}: use one Penstock everywhere")
    if bool(flags & ENCRYPTED) != encrypted:
        mine, its = ("encrypted", "not") if encrypted else ("not encrypted", "encrypted")
        raise PeerRefusedError(f"connections are {mine} here, and {its} where the peer is: give both the same settings")


def _prove(secret: bytes, what: bytes, said: bytes) -> bytes:
    return hmac.digest(secret, b"penstock " + what + b" " + said, "sha256")


def _check(secret: bytes, what: bytes, said: bytes, proof: bytes) -> None:
    if not hmac.compare_digest(_prove(secret, what, said), proof):
        raise PeerRefusedError("the peer does not know this application's secret")
