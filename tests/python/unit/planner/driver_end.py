"""The driver's side of a connection with the planner sidecar, which is in the JVM in production."""

from penstock.sidecars.planner.frame import PREFIX_BYTES, Frame, Kind, decode_prefix, decode_rest, encode
from planner_messages import TOKEN


class Client:
    """The driver's side of a connection."""

    def __init__(self, connection):
        self.connection = connection

    def send(self, data):
        self.connection.sendall(data)

    def ask(self, frame):
        self.send(encode(frame))
        return self.receive()

    def receive(self):
        prefix = decode_prefix(self.read(PREFIX_BYTES))
        return decode_rest(prefix, self.read(prefix.head_bytes + prefix.body_bytes))

    def is_closed(self):
        try:
            return self.connection.recv(1) == b""
        except ConnectionResetError:
            return True

    def read(self, count):
        data = b""
        while len(data) < count:
            part = self.connection.recv(count - len(data))
            assert part, "the connection ended"
            data += part
        return data


def hello(client, token=TOKEN):
    return client.ask(Frame(Kind.HELLO, 1, {"token": token, "penstock": "0"}))
