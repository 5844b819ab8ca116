"""The sidecar's end of an executor channel, for the benchmark `ring`. It receives data, or sends it on request."""

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
TIMEOUT_S = 60.0


def serve(executor_channel: ExecutorChannel) -> None:
    """Serve requests until the channel ends.

    After `TAKE`, the data that follow are received and acknowledged with one byte. After `SEND`, as many bytes as
    requested are sent.
    """
    data = memoryview(bytes(SLICE_BYTES))
    while True:
        request, size = QUESTION.unpack(executor_channel.message(Deadline.after(TIMEOUT_S), QUESTION.size))
        if request == SEND:
            receive_buffer = executor_channel.begin(size)
            for length in cut(size):
                receive_buffer.part(length, Deadline.after(TIMEOUT_S))[:] = data[:length]
                receive_buffer.received(length)
            continue
        executor_channel.send(b"\0", Deadline.after(TIMEOUT_S))
        _, parts = executor_channel.receive(Deadline.after(TIMEOUT_S), TIMEOUT_S)
        # A receiver uses the data in place, so nothing is copied.
        for _ in parts:
            pass
        executor_channel.send(b"\0", Deadline.after(TIMEOUT_S))


def main(folder: Path) -> None:
    """Accept a connection, open an executor channel on it and serve the channel."""
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
