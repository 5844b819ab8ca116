"""The sidecar's end of an executor channel, for the benchmark `ring`: takes what comes, or sends what is asked for."""

import socket
import struct
import sys
from pathlib import Path

from penstock.sidecars.transfer.channel_records import RECORD, decode, encode
from penstock.sidecars.transfer.executor_channel import ChannelMemory, ExecutorChannel
from penstock.transport.deadline import Deadline
from penstock.transport.slices import SLICE_BYTES, cut

TAKE, SEND = 0, 1
QUESTION = struct.Struct("<QQ")
PATIENCE_S = 60.0


def serve(executor_channel: ExecutorChannel) -> None:
    """Serve a channel until it ends: `TAKE` and bytes that are answered by one, or `SEND` and how many are wanted."""
    data = memoryview(bytes(SLICE_BYTES))
    while True:
        what, size = QUESTION.unpack(executor_channel.message(Deadline.after(PATIENCE_S), QUESTION.size))
        if what == SEND:
            receive_buffer = executor_channel.begin(size)
            for length in cut(size):
                receive_buffer.part(length, Deadline.after(PATIENCE_S))[:] = data[:length]
                receive_buffer.landed(length)
            continue
        executor_channel.send(b"\0", Deadline.after(PATIENCE_S))
        _, parts = executor_channel.receive(Deadline.after(PATIENCE_S), PATIENCE_S)
        # Where it lies is where it is used.
        for _ in parts:
            pass
        executor_channel.send(b"\0", Deadline.after(PATIENCE_S))


def main(folder: Path) -> None:
    """Open an executor channel for who connects, and serve it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(folder / "ring.sock"))
        server.listen(1)
        print("ready", flush=True)
        connection, _ = server.accept()
    offer = decode(connection.recv(RECORD.size, socket.MSG_WAITALL))
    memory = ChannelMemory.adopted(offer)
    connection.sendall(encode(memory.record))
    serve(ExecutorChannel(connection, memory.bytes))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
