"""Readers of untrusted bytes return a result or raise one of the package's own errors, never another error.

``PENSTOCK_FUZZ_INPUTS`` is the number of inputs for each reader, and ``PENSTOCK_FUZZ_SEED`` is their seed.
"""

import json
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from penstock.api.errors import PenstockError
from penstock.monitor.document import read
from penstock.sidecars.transfer.channel_records import BrokenChannelError, Kind, Record, decode, encode
from penstock.sidecars.transfer.service import (
    ENVELOPE,
    Question,
    What,
    _limit_s,
    _of_transport,
    read_question,
    write_question,
)
from penstock.state.checkpoint import Checkpoint
from penstock.state.storage import StoredFile
from penstock.transport import slices
from penstock.transport.errors import TransportError
from penstock.transport.handshake import HELLO_BYTES, Accepting, Connecting
from written_checkpoint import Writer

INPUTS = int(os.environ.get("PENSTOCK_FUZZ_INPUTS", "2000"))
SEED = int(os.environ.get("PENSTOCK_FUZZ_SEED", "20261127"))
STATUS = (Path(__file__).parent / "data" / "status.json").read_bytes()
SECRET = b"of one application"


def changed(data: bytes, random_: random.Random) -> bytes:
    """Return valid bytes with one, two or eight random changes."""
    bytes_ = bytearray(data)
    for _ in range(random_.choice((1, 1, 2, 8))):
        at = random_.randrange(len(bytes_) + 1)
        match random_.randrange(5):
            case 0 if at < len(bytes_):
                bytes_[at] ^= 1 << random_.randrange(8)
            case 1:
                del bytes_[at : at + random_.randrange(1, 9)]
            case 2:
                bytes_[at:at] = random_.randbytes(random_.randrange(1, 9))
            case 3:
                bytes_[at : at + 4] = random_.choice((b"\xff" * 4, bytes(4), b"\x7f\xff\xff\xff", b"\x00\x00\x00\x80"))
            case _:
                del bytes_[at:]
    return bytes(bytes_)


def inputs(*right: bytes) -> list[bytes]:
    random_ = random.Random(SEED)  # noqa: S311
    return [changed(random_.choice(right), random_) for _ in range(INPUTS)]


def fuzz(
    reader: Callable[[bytes], object], expected: type[Exception] | tuple[type[Exception], ...], *right: bytes
) -> int:
    """Read changed inputs. Return how many of them were accepted."""
    accepted = 0
    for data in inputs(*right):
        try:
            reader(data)
            accepted += 1
        except expected:
            pass
        except Exception as error:
            pytest.fail(f"{error!r} for {data.hex()}, seed {SEED}")
    return accepted


def test_a_hello_of_a_stranger_is_never_accepted() -> None:
    hello = Connecting(SECRET, encrypted=False).hello

    def accept(data: bytes) -> None:
        side = Accepting(SECRET, encrypted=False)
        # The network delivers the expected number of bytes, or none.
        answer = side.answer(data.ljust(HELLO_BYTES, b"\0")[:HELLO_BYTES])
        side.ready(data[:32].ljust(32, b"\0"))
        assert answer

    assert fuzz(accept, TransportError, hello) == 0


def test_a_changed_answer_of_a_stranger_is_refused() -> None:
    asking = Connecting(SECRET, encrypted=True)
    answer = Accepting(SECRET, encrypted=True).answer(asking.hello)

    def connect(data: bytes) -> None:
        padded = data.ljust(len(answer), b"\0")[: len(answer)]
        if padded != answer:
            asking.proof(padded)

    fuzz(connect, TransportError, answer)


@pytest.mark.parametrize("sealed", [False, True])
def test_changed_headers_of_slices_are_refused_or_within_bounds(sealed: bool) -> None:
    data = memoryview(bytes(1000))
    header = slices.encode(7, 1000, data, sealed=sealed)

    def receive(data: bytes) -> None:
        found = slices.decode(data.ljust(len(header), b"\0")[: len(header)], 7, sealed=sealed)
        assert 0 <= found.data_bytes <= slices.SLICE_BYTES

    fuzz(receive, TransportError, header)


def test_changed_questions_of_an_executor_are_read_or_refused() -> None:
    peer = {"host": "a/b/0", "tcp": "127.0.0.1:4040", "local": "@penstock-1-ff"}
    right = [
        write_question(Question(What.ASK, 30_000, peer, b"which?", 7)),
        write_question(Question(What.STATUS, 1, {}, b"")),
    ]
    assert fuzz(read_question, BrokenChannelError, *right) > 0


def test_changed_envelopes_of_peers_have_a_bounded_time_limit_or_are_refused() -> None:
    question = ENVELOPE.pack(1, 0, 0, 4711, 9, 30_000, 77) + b"which shards?"

    def receive(data: bytes) -> None:
        assert 0 <= _limit_s(_of_transport(data, "tcp")) <= 0xFFFFFFFF / 1000

    fuzz(receive, BrokenChannelError, question)


def test_changed_records_of_a_channel_are_read_or_refused() -> None:
    size = len(encode(Record(Kind.SLICE, 0)))

    # The socket delivers the expected number of bytes, or none.
    def receive(data: bytes) -> Record:
        return decode(data.ljust(size, b"\0")[:size])

    fuzz(receive, BrokenChannelError, encode(Record(Kind.SLICE, 0, 5, 5)), encode(Record(Kind.TAKEN, 4)))


def test_a_changed_status_is_read_or_refused() -> None:
    fuzz(lambda data: read(data.decode(errors="replace")), PenstockError, STATUS)


class Named:
    """Storage with files of the given names, all with the same content."""

    root = "/named"

    def __init__(self, names: list[str], content: bytes) -> None:
        self._names, self._content = names, content

    def files(self, folder: str) -> list[StoredFile]:
        return [StoredFile(name, len(self._content)) for name in self._names if folder]

    def folders(self, _: str) -> list[str]:
        return self._names

    def read(self, _: str, offset: int = 0, length: int | None = None) -> bytes:
        return self._content[offset : None if length is None else offset + length]


def test_changed_names_and_json_in_a_checkpoint_are_never_an_error(tmp_path: Path) -> None:
    Writer(tmp_path).batch(0, {0: {b"a": b"1"}})
    checkpoint = Checkpoint(str(tmp_path))
    metadata = json.dumps({"id": "9b0c", "operatorInfo": {"operatorId": 0, "operatorName": "count"}}).encode()

    def look(data: bytes) -> None:
        names = [part.decode(errors="replace").replace("/", "?") for part in data.split(b"\n")]
        checkpoint._storage = Named(names, data)
        checkpoint.manifests()
        checkpoint.routing_version_numbers()
        checkpoint.partitions(0)
        checkpoint.committed_batch()
        checkpoint.all_files()
        assert isinstance(checkpoint.query_id(), str)
        assert all(isinstance(name, str) for name in checkpoint.operator_names().values())

    right = b"0.0\n17.2\n00001\n" + b"9" * 30 + "\n\u00b2\n".encode()
    assert fuzz(look, (), right, b"v1\n" + metadata, metadata) == INPUTS
