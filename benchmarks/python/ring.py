"""The other side of a lane that is measured by the benchmark `ring`: takes what comes, or sends what is asked for."""

import socket
import struct
import sys
from pathlib import Path

from penstock.courier.lane import Lane, LaneMemory
from penstock.courier.records import RECORD, decode, encode
from penstock.transport.deadline import Deadline
from penstock.transport.slices import SLICE_BYTES, cut

TAKE, SEND = 0, 1
QUESTION = struct.Struct("<QQ")
PATIENCE_S = 60.0


def serve(lane: Lane) -> None:
    """Serve a lane until it ends: `TAKE` and bytes that are answered by one, or `SEND` and how many are wanted."""
    data = memoryview(bytes(SLICE_BYTES))
    while True:
        what, size = QUESTION.unpack(lane.message(Deadline.after(PATIENCE_S), QUESTION.size))
        if what == SEND:
            landing = lane.begin(size)
            for length in cut(size):
                landing.part(length, Deadline.after(PATIENCE_S))[:] = data[:length]
                landing.landed(length)
            continue
        lane.send(b"\0", Deadline.after(PATIENCE_S))
        _, parts = lane.receive(Deadline.after(PATIENCE_S), PATIENCE_S)
        # Where it lies is where it is used.
        for _ in parts:
            pass
        lane.send(b"\0", Deadline.after(PATIENCE_S))


def main(folder: Path) -> None:
    """Open a lane for who connects, and serve it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(folder / "ring.sock"))
        server.listen(1)
        print("ready", flush=True)
        connection, _ = server.accept()
    offer = decode(connection.recv(RECORD.size, socket.MSG_WAITALL))
    memory = LaneMemory.adopted(offer)
    connection.sendall(encode(memory.record))
    serve(Lane(connection, memory.bytes))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
