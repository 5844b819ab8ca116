"""The executor's side of the channels to its transfer sidecar, which is in the JVM in production."""

import json
import mmap
import os
import queue
import signal
import socket
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

from penstock.sidecars.transfer.channel_records import RECORD, Kind, Record, decode, encode
from penstock.sidecars.transfer.executor_channel import (
    MEMORY_BYTES,
    RECEIVE_BUFFER_BYTES,
    ExecutorChannel,
    GivenUpError,
)
from penstock.sidecars.transfer.service import ENVELOPE, OUTCOME_BITS, Outcome, Question, What, write_question
from penstock.transport.deadline import Deadline
from penstock.transport.errors import TransportError
from sidecar_process import PATIENCE_S, SECRET, send_line, sidecar_process, start_line


def soon(seconds=10.0):
    return Deadline.after(seconds)


def offer(role, *, process=0, descriptor=0):
    """Return the record that offers the memory of an earlier executor channel; none with process 0."""
    return Record(
        Kind.CHANNEL_MEMORY, process, descriptor, MEMORY_BYTES + (RECEIVE_BUFFER_BYTES if role == b"A" else 0)
    )


class RefuseError(Exception):
    """Raised by a sender that does not have what is asked for."""


@dataclass
class DirectAnswer:
    """Answer of a sender that writes to the receive buffer until `done` is set."""

    payload: bytes
    done: threading.Event


class ExecutorEnd:
    """An executor with its sidecar.

    ``give`` gets the questions of other executors and returns the answers. It is called concurrently.
    """

    def __init__(self, give=None, *, transport="auto", channels=2, encrypted=False, secret=SECRET, host="127.0.0.1"):
        self.folder = Path(tempfile.mkdtemp(prefix="penstock-test-"))
        self.give = give or (lambda payload: payload)
        self.token = os.urandom(32).hex()
        self.process = sidecar_process(self.folder)
        line = start_line(
            token=self.token,
            secret=secret.hex(),
            host=host,
            transport=transport,
            encrypted=encrypted,
            channels=channels,
        )
        send_line(self.process, line)
        line = self.process.stdout.readline()
        assert line.startswith("ready "), self.process.stderr.read()
        self.announced = json.loads(line.removeprefix("ready "))
        self.addresses = self.announced["addresses"]
        self.sockets = []
        self.answered_by = []
        """Number of the transport that carried each answer of another executor."""
        self.receive_buffers = []
        """Process, descriptor and token of the receive buffer in each question that was received."""
        self.asking = queue.SimpleQueue()
        for _ in range(channels):
            self.asking.put(self.open(b"A"))
            threading.Thread(target=self._sender, args=(self.open(b"G"),), daemon=True).start()
        assert self.process.stdout.readline() == "open\n"

    def connect(self, first):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(PATIENCE_S)
        connection.connect(str(self.folder / "executor.sock"))
        connection.sendall(first)
        return connection

    def open(self, role):
        connection = self.connect(self.token.encode() + role)
        self.sockets.append(connection)
        connection.sendall(encode(offer(role)))
        record = decode(connection.recv(RECORD.size, socket.MSG_WAITALL))
        assert record.kind == Kind.CHANNEL_MEMORY
        with Path(f"/proc/{record.number}/fd/{record.message_bytes}").open("r+b") as file:
            memory = memoryview(mmap.mmap(file.fileno(), record.data_bytes))
        return ExecutorChannel(connection, memory, is_executor=True)

    def _sender(self, executor_channel):
        while True:
            try:
                message = executor_channel.message(Deadline.after(3600), 1 << 20)
            except TransportError:
                return
            _, _, _, process, descriptor, _, token = ENVELOPE.unpack_from(message)
            self.receive_buffers.append((process, descriptor, token))
            try:
                given = self.give(message[ENVELOPE.size :])
                if isinstance(given, DirectAnswer):
                    self._land(executor_channel, given)
                    continue
                answer = bytes([Outcome.HERE]) + given
            except RefuseError as error:
                answer = bytes([Outcome.REFUSED]) + str(error).encode()
            except GivenUpError:
                executor_channel.give_up()
                continue
            try:
                executor_channel.send(answer, Deadline.after(PATIENCE_S))
            except TransportError:
                return

    @staticmethod
    def _land(executor_channel, given):
        executor_channel.send(bytes([Outcome.DIRECT]) + given.payload, Deadline.after(PATIENCE_S))
        given.done.wait(PATIENCE_S)
        executor_channel.send(bytes([Outcome.HERE]), Deadline.after(PATIENCE_S))

    def question(self, question):
        """Ask on a free channel. Return outcome and payload."""
        executor_channel = self.asking.get(timeout=PATIENCE_S)
        try:
            executor_channel.send(write_question(question), Deadline.after(PATIENCE_S))
            answer = executor_channel.message(Deadline.after(PATIENCE_S), 1 << 30)
        finally:
            self.asking.put(executor_channel)
        if question.what == What.ASK:
            self.answered_by.append(answer[0] >> 4)
        return Outcome(answer[0] & OUTCOME_BITS), answer[1:]

    def ask(self, peer, payload, seconds=10.0, token=0):
        return self.question(Question(What.ASK, int(seconds * 1000), peer, payload, token))

    def status(self):
        _, answer = self.question(Question(What.STATUS, 5000, {}, b""))
        return json.loads(answer)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE_S)

    def close(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE_S)
        self.process.stdout.close()
        self.process.stderr.close()
        for connection in self.sockets:
            connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
