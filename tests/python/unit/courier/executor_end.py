"""The executor's side of its sidecar, as the JVM has it."""

import json
import mmap
import os
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

from penstock.courier.courier import ENVELOPE, OUTCOME_BITS, Outcome, Question, What, write_question
from penstock.courier.lane import LANDING_BYTES, MEMORY_BYTES, GivenUpError, Lane
from penstock.courier.records import RECORD, Kind, Record, decode, encode
from penstock.transport.deadline import Deadline
from penstock.transport.errors import TransportError

SECRET = b"of one application"
PATIENCE_S = 30.0


def offer(role, *, process=0, descriptor=0):
    """What an executor says of memory that it has for a lane: nothing where there is no process."""
    return Record(Kind.LANE, process, descriptor, MEMORY_BYTES + (LANDING_BYTES if role == b"A" else 0))


class RefuseError(Exception):
    """What a giver raises that does not have what is asked for."""


@dataclass
class Landed:
    """What a giver answers that writes to where it is read, and is at it until it is done."""

    told: bytes
    done: threading.Event


class ExecutorEnd:
    """An executor with its sidecar.

    ``give`` gets what other executors ask, and returns the answer; it is called side by side.
    """

    def __init__(self, give=None, *, transport="auto", lanes=2, encrypted=False, secret=SECRET, host="127.0.0.1"):
        self.folder = Path(tempfile.mkdtemp(prefix="penstock-test-"))
        self.give = give or (lambda payload: payload)
        self.token = os.urandom(32).hex()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "penstock.courier", str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        start = {
            "token": self.token,
            "secret": secret.hex(),
            "host": host,
            "transport": transport,
            "encrypted": encrypted,
            "lanes": lanes,
        }
        self.tell(json.dumps(start))
        said = self.process.stdout.readline()
        assert said.startswith("ready "), self.process.stderr.read()
        self.told = json.loads(said.removeprefix("ready "))
        self.addresses = self.told["addresses"]
        self.sockets = []
        self.came_by = []
        """Number of the transport by which each answer of another executor came."""
        self.landings = []
        """Where answers may land: process, descriptor and token, for each question that was to be answered."""
        self.asking = queue.SimpleQueue()
        for _ in range(lanes):
            self.asking.put(self.open(b"A"))
            threading.Thread(target=self._giver, args=(self.open(b"G"),), daemon=True).start()
        assert self.process.stdout.readline() == "open\n"

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

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
        assert record.kind == Kind.LANE
        with Path(f"/proc/{record.number}/fd/{record.message_bytes}").open("r+b") as file:
            memory = memoryview(mmap.mmap(file.fileno(), record.data_bytes))
        return Lane(connection, memory, is_executor=True)

    def _giver(self, lane):
        while True:
            try:
                message = lane.message(Deadline.after(3600), 1 << 20)
            except TransportError:
                return
            _, _, _, process, descriptor, _, token = ENVELOPE.unpack_from(message)
            self.landings.append((process, descriptor, token))
            try:
                given = self.give(message[ENVELOPE.size :])
                if isinstance(given, Landed):
                    self._land(lane, given)
                    continue
                answer = bytes([Outcome.HERE]) + given
            except RefuseError as error:
                answer = bytes([Outcome.REFUSED]) + str(error).encode()
            except GivenUpError:
                lane.give_up()
                continue
            try:
                lane.send(answer, Deadline.after(PATIENCE_S))
            except TransportError:
                return

    @staticmethod
    def _land(lane, given):
        lane.send(bytes([Outcome.LANDS]) + given.told, Deadline.after(PATIENCE_S))
        given.done.wait(PATIENCE_S)
        lane.send(bytes([Outcome.HERE]), Deadline.after(PATIENCE_S))

    def question(self, question):
        """Ask on a free lane; gives outcome and payload."""
        lane = self.asking.get(timeout=PATIENCE_S)
        try:
            lane.send(write_question(question), Deadline.after(PATIENCE_S))
            answer = lane.message(Deadline.after(PATIENCE_S), 1 << 30)
        finally:
            self.asking.put(lane)
        if question.what == What.ASK:
            self.came_by.append(answer[0] >> 4)
        return Outcome(answer[0] & OUTCOME_BITS), answer[1:]

    def ask(self, peer, payload, seconds=10.0, token=0):
        return self.question(Question(What.ASK, int(seconds * 1000), peer, payload, token))

    def status(self):
        _, told = self.question(Question(What.STATUS, 5000, {}, b""))
        return json.loads(told)

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
