"""Frames between the driver and its planner sidecar."""

import struct

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.sidecars.planner.frame import (
    HEADER,
    MAX_BODY_BYTES,
    PREFIX_BYTES,
    VERSION,
    BrokenFrameError,
    Frame,
    Kind,
    decode_prefix,
    decode_rest,
    encode,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
frames = st.builds(
    Frame,
    st.sampled_from(Kind),
    st.integers(0, 2**64 - 1),
    st.dictionaries(st.text(max_size=8), json_values, max_size=4),
    st.binary(max_size=200),
)


def decode(data):
    return decode_rest(decode_prefix(data[:PREFIX_BYTES]), data[PREFIX_BYTES:])


@given(frames)
def test_a_written_frame_is_read(frame):
    assert decode(encode(frame)) == frame


@given(frames, st.data())
def test_every_flipped_bit_is_found(frame, data):
    written = bytearray(encode(frame))
    bit = data.draw(st.integers(0, 8 * len(written) - 1))
    written[bit // 8] ^= 1 << bit % 8
    with pytest.raises(BrokenFrameError):
        decode(bytes(written))


@given(frames, st.data())
def test_every_lost_byte_is_found(frame, data):
    written = encode(frame)
    kept = data.draw(st.integers(PREFIX_BYTES, len(written)))
    if kept < len(written):
        with pytest.raises(BrokenFrameError):
            decode(written[:kept])


@given(st.binary(min_size=PREFIX_BYTES, max_size=PREFIX_BYTES))
def test_random_bytes_are_not_a_frame(data):
    with pytest.raises(BrokenFrameError):
        decode(data)


def written_with(head: bytes, body_bytes: int = 0, version: int = VERSION, kind: int = 1) -> bytes:
    header = HEADER.pack(b"PSTK", version, kind, 0, 1, len(head), body_bytes)
    return header + struct.pack("<I", google_crc32c.value(header + head)) + head


@pytest.mark.parametrize(
    ("written", "error"),
    [
        (written_with(b"{}", version=1), f"protocol version 1, expected {VERSION}"),
        (written_with(b"{}", kind=9), "unknown frame kind 9"),
        (written_with(b"{}", body_bytes=MAX_BODY_BYTES + 1), "too long"),
        (written_with(b"[]"), "not a JSON object"),
        (written_with(b"{"), "not JSON"),
        (written_with(b"\xff"), "not JSON"),
        (written_with(b"[" * 100000), "not JSON"),
    ],
)
def test_invalid_frames_are_refused(written, error):
    with pytest.raises(BrokenFrameError, match=error):
        decode(written)


def test_a_frame_that_is_too_long_is_not_written():
    with pytest.raises(ValueError, match="too long"):
        encode(Frame(Kind.MEASURED, 1, {"x": "a" * (1 << 20)}))
