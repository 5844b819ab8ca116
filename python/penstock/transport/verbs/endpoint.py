"""One end of a reliable connection: its memory, its queue pair, and its completions."""

from __future__ import annotations

import ctypes
import mmap
import os
import select
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from penstock.transport import slices, sockets
from penstock.transport.deadline import Deadline
from penstock.transport.errors import PeerBrokenError, PeerLostError, TransportError
from penstock.transport.verbs.device import PORT, Device

SLOTS = 16
"""Largest number of slices on their way in each direction."""
RING_BYTES = SLOTS * slices.SLICE_BYTES
TOKEN_BYTES = 64
"""Size of a control message: one byte for its kind, and its content."""
_TOKENS = 64
"""Largest number of control messages that wait in each direction: more than slices and their credits need."""
_ADDRESS = struct.Struct("<IIQI40s")
_HEADER, _CREDIT = b"H", b"C"
_CREDIT_BODY = struct.Struct("<Q")
_LOOK_S = 0.5
_READ_ID, _SEND_ID, _RECEIVE_ID = 0, 1, 2
"""Ids of work requests. The number of its buffer is added to the id of a receive request."""

T = TypeVar("T")


class Endpoint:
    """Connects to the peer's endpoint over an existing connection.

    One thread at a time collects completions for all threads, because the library blocks Python's other threads while
    it works.

    Parameters
    ----------
    device
        Open RDMA device.
    control
        Connection to the peer. If it closes, the peer is gone.

    Raises
    ------
    TransportError
        The device returns an error.
    """

    def __init__(self, device: Device, control: socket.socket) -> None:
        from pyverbs.cq import CQ, CompChannel  # noqa: PLC0415
        from pyverbs.mr import MR  # noqa: PLC0415
        from pyverbs.pd import PD  # noqa: PLC0415
        from pyverbs.pyverbs_error import PyverbsError  # noqa: PLC0415
        from pyverbs.qp import QP, QPCap, QPInitAttr  # noqa: PLC0415

        self._device = device
        self._control = control
        self._condition = threading.Condition()
        self._leading = False
        self._failed: TransportError | None = None
        self._headers: deque[bytes] = deque()
        self._read = False
        self._sending = 0
        self._next_token = 0
        self.credit = 0
        enums = device.enums
        try:
            self._pd = PD(device.context)
            known = _event_files()
            self._events = CompChannel(device.context)
            (self._events_file,) = _event_files() - known
            self._cq = CQ(device.context, 4 * _TOKENS, None, self._events, 0)
            self._cq.req_notify(False)
            self.ring, self._ring_mr = self._memory(MR, RING_BYTES, enums.IBV_ACCESS_REMOTE_READ)
            self.receive_buffer, self._receive_mr = self._memory(MR, slices.SLICE_BYTES, enums.IBV_ACCESS_LOCAL_WRITE)
            self._outbox, self._outbox_mr = self._memory(MR, _TOKENS * TOKEN_BYTES, 0)
            self._inbox, self._inbox_mr = self._memory(MR, _TOKENS * TOKEN_BYTES, enums.IBV_ACCESS_LOCAL_WRITE)
            cap = QPCap(max_send_wr=2 * _TOKENS, max_recv_wr=_TOKENS, max_send_sge=1, max_recv_sge=1)
            init = QPInitAttr(qp_type=enums.IBV_QPT_RC, scq=self._cq, rcq=self._cq, cap=cap, sq_sig_all=0)
            self._qp = QP(self._pd, init)
        except PyverbsError as error:
            raise PeerLostError(f"the RDMA device returned an error: {error}") from None

    def wait(self, ready: Callable[[], T | None], deadline: Deadline, what: str) -> T:
        """Wait until `ready` returns a value, and return it; `ready` is called under a lock.

        Raises
        ------
        TransportError
            There is no value before the deadline, or the connection failed.
        """
        with self._condition:
            while True:
                found = ready()
                if found is not None:
                    return found
                if self._failed is not None:
                    raise self._failed
                left = deadline.left_s(what)
                if self._leading:
                    self._condition.wait(left)
                    continue
                self._leading = True
                self._condition.release()
                try:
                    peer_closed = self._sleep(min(left, _LOOK_S))
                finally:
                    self._condition.acquire()
                    self._leading = False
                    self._condition.notify_all()
                self._collect()
                if peer_closed and self._failed is None:
                    self._failed = PeerLostError(f"the peer closed the connection while this process waited for {what}")

    def announce(self, header: bytes, deadline: Deadline) -> None:
        """Announce a slice in the ring to the peer."""
        self._send(_HEADER + header, deadline)

    def give_credit(self, taken: int, deadline: Deadline) -> None:
        """Tell the peer how many slices were taken from its ring."""
        self._send(_CREDIT + _CREDIT_BODY.pack(taken), deadline)

    def header(self, deadline: Deadline) -> bytes:
        """Wait for the header of a slice."""
        return self.wait(lambda: self._headers.popleft() if self._headers else None, deadline, "a message")

    def fetch(self, slot: int, size: int, deadline: Deadline) -> memoryview:
        """Read a slot of the peer's ring, and return memory that is valid until the next call."""
        from pyverbs.wr import SGE, SendWR  # noqa: PLC0415

        work = SendWR(
            wr_id=_READ_ID,
            sg=[SGE(_at(self.receive_buffer), size, self._receive_mr.lkey)],
            num_sge=1,
            opcode=self._device.enums.IBV_WR_RDMA_READ,
            send_flags=self._device.enums.IBV_SEND_SIGNALED,
        )
        work.set_wr_rdma(self._peer_key, self._peer_ring + slot * slices.SLICE_BYTES)
        with self._condition:
            self._read = False
            self._post(work)
        self.wait(lambda: True if self._read else None, deadline, "the rest of a message")
        return self.receive_buffer[:size]

    def end(self) -> None:
        """Wake all threads that wait for the peer."""
        with self._condition:
            if self._failed is None:
                self._failed = PeerLostError("the connection was closed")
            self._condition.notify_all()

    def free(self) -> None:
        """Release all resources of the device; no thread may use the endpoint any more."""
        for part in (
            self._qp,
            self._ring_mr,
            self._receive_mr,
            self._outbox_mr,
            self._inbox_mr,
            self._cq,
            self._events,
            self._pd,
        ):
            part.close()

    def _memory(self, register: Any, size: int, access: int) -> tuple[memoryview, Any]:
        memory = memoryview(mmap.mmap(-1, size))
        if access & self._device.enums.IBV_ACCESS_REMOTE_READ:
            access |= self._device.enums.IBV_ACCESS_LOCAL_WRITE
        return memory, register(self._pd, size, access, address=_at(memory))

    def meet(self, deadline: Deadline) -> None:
        """Exchange addresses with the peer, and connect.

        Raises
        ------
        TransportError
            The peer does not take part, or the device returns an error.
        """
        from pyverbs.pyverbs_error import PyverbsError  # noqa: PLC0415

        try:
            self._meet(deadline)
        except PyverbsError as error:
            raise PeerLostError(f"the RDMA device returned an error: {error}") from None

    def _meet(self, deadline: Deadline) -> None:
        from pyverbs.addr import GID, AHAttr, GlobalRoute  # noqa: PLC0415
        from pyverbs.qp import QPAttr  # noqa: PLC0415

        enums = self._device.enums
        access = enums.IBV_ACCESS_LOCAL_WRITE | enums.IBV_ACCESS_REMOTE_READ
        attributes = QPAttr(port_num=PORT)
        attributes.pkey_index = 0
        attributes.qp_access_flags = access
        self._qp.to_init(attributes)
        for token in range(_TOKENS):
            self._receive(token)
        number = int.from_bytes(os.urandom(3), "little")
        mine = _ADDRESS.pack(
            self._qp.qp_num, number, _at(self.ring), self._ring_mr.rkey, self._device.gid.encode().ljust(40, b"\0")
        )
        sockets.write(self._control, [memoryview(mine)], deadline, "the peer to connect")
        found = memoryview(bytearray(_ADDRESS.size))
        sockets.read(self._control, found, deadline, "the peer's address")
        peer, first, self._peer_ring, self._peer_key, gid = _ADDRESS.unpack(found)
        attributes.path_mtu = self._device.mtu
        attributes.dest_qp_num = peer
        attributes.rq_psn = first
        attributes.max_dest_rd_atomic = 1
        attributes.min_rnr_timer = 12
        try:
            route = GlobalRoute(dgid=GID(gid.rstrip(b"\0").decode()), sgid_index=self._device.gid_index, hop_limit=64)
        except (ValueError, UnicodeDecodeError) as error:
            raise PeerBrokenError(f"the peer's address is invalid: {error}") from None
        attributes.ah_attr = AHAttr(gr=route, is_global=1, port_num=PORT)
        self._qp.to_rtr(attributes)
        attributes.sq_psn = number
        # Seven retries of 67 ms: a dead peer is detected after half a second.
        attributes.timeout = 14
        attributes.retry_cnt = 7
        attributes.rnr_retry = 7
        attributes.max_rd_atomic = 1
        self._qp.to_rts(attributes)
        # Messages sent before the peer can receive would be retried for a while, so both sides wait for each other.
        sockets.write(self._control, [memoryview(b"!")], deadline, "the peer to connect")
        sockets.read(self._control, memoryview(bytearray(1)), deadline, "the peer to be ready")

    def _receive(self, token: int) -> None:
        from pyverbs.wr import SGE, RecvWR  # noqa: PLC0415

        place = SGE(_at(self._inbox) + token * TOKEN_BYTES, TOKEN_BYTES, self._inbox_mr.lkey)
        self._qp.post_recv(RecvWR(wr_id=_RECEIVE_ID + token, sg=[place], num_sge=1))

    def _send(self, message: bytes, deadline: Deadline) -> None:
        from pyverbs.wr import SGE, SendWR  # noqa: PLC0415

        def place() -> int | None:
            if self._sending >= _TOKENS:
                return None
            self._sending += 1
            self._next_token += 1
            token = self._next_token % _TOKENS
            at = token * TOKEN_BYTES
            self._outbox[at : at + len(message)] = message
            work = SendWR(
                wr_id=_SEND_ID,
                sg=[SGE(_at(self._outbox) + at, len(message), self._outbox_mr.lkey)],
                num_sge=1,
                opcode=self._device.enums.IBV_WR_SEND,
                send_flags=self._device.enums.IBV_SEND_SIGNALED,
            )
            self._post(work)
            return token

        self.wait(place, deadline, "the peer to read")

    def _post(self, work: Any) -> None:
        from pyverbs.pyverbs_error import PyverbsError  # noqa: PLC0415

        if self._failed is not None:
            raise self._failed
        try:
            self._qp.post_send(work)
        except PyverbsError as error:
            self._failed = PeerLostError(f"the RDMA device returned an error: {error}")
            raise self._failed from None

    def _sleep(self, seconds: float) -> bool:
        """Wait for the device or the peer; return whether the peer has closed the connection."""
        poll = select.poll()
        poll.register(self._events_file, select.POLLIN)
        try:
            poll.register(self._control, select.POLLIN)
        except ValueError:
            return True
        return bool(poll.poll(seconds * 1000)) and sockets.is_gone(self._control)

    def _collect(self) -> None:
        # Without an event, the library would wait for one and block all Python threads.
        poll = select.poll()
        poll.register(self._events_file, select.POLLIN)
        if poll.poll(0):
            self._events.get_cq_event(self._cq)
            self._cq.ack_events(1)
            self._cq.req_notify(False)
        count, done = self._cq.poll(4 * _TOKENS)
        for work in done[:count]:
            if work.status != self._device.enums.IBV_WC_SUCCESS:
                if self._failed is None:
                    self._failed = PeerLostError(f"the RDMA device lost the peer: status {work.status}")
            elif work.wr_id == _READ_ID:
                self._read = True
            elif work.wr_id == _SEND_ID:
                self._sending -= 1
            else:
                self._take(work.wr_id - _RECEIVE_ID, work.byte_len)

    def _take(self, token: int, size: int) -> None:
        at = token * TOKEN_BYTES
        message = bytes(self._inbox[at : at + size])
        self._receive(token)
        if message[:1] == _HEADER and size == 1 + slices.HEADER.size:
            self._headers.append(message[1:])
        elif message[:1] == _CREDIT and size == 1 + _CREDIT_BODY.size:
            (self.credit,) = _CREDIT_BODY.unpack(message[1:])
        elif self._failed is None:
            self._failed = PeerBrokenError(
                f"invalid control message of {size} bytes that begins with {message[:8].hex()}"
            )


def _at(memory: memoryview) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def _event_files() -> set[int]:
    """Return descriptors of completion channels, because not all versions of the library expose theirs."""
    found = set()
    for entry in os.listdir("/proc/self/fd"):  # noqa: PTH208
        try:
            target = os.readlink(f"/proc/self/fd/{entry}")  # noqa: PTH115
        except OSError:
            continue
        if "infinibandevent" in target:
            found.add(int(entry))
    return found
