import struct
from binascii import crc32
from contextlib import suppress

import pytest
from botocore.eventstream import EventStreamBuffer  # type: ignore[import-untyped]  # it ships no types
from hypothesis import given
from hypothesis import strategies as st

from kinference.shapes.bedrock_converse.frames import FrameReader
from kinference.shapes.sse import BadFrame
from tests.unit.shapes.bedrock_converse.frames import frame

WHOLE = frame("messageStart", {"role": "assistant"}) + frame("contentBlockDelta", {"delta": {"text": "é"}})


def test_our_frames_are_those_of_aws() -> None:
    buffer = EventStreamBuffer()
    buffer.add_data(WHOLE)
    assert [message.headers[":event-type"] for message in buffer] == ["messageStart", "contentBlockDelta"]


def test_frames_are_events_wherever_they_are_cut() -> None:
    for cut in range(len(WHOLE) + 1):
        reader = FrameReader()
        events = [*reader.feed(WHOLE[:cut]), *reader.feed(WHOLE[cut:])]
        assert [event.event for event in events] == ["messageStart", "contentBlockDelta"]
        assert b"".join(event.raw for event in events) == WHOLE
        assert reader.tail() is None


def test_an_exception_is_named_by_its_type() -> None:
    (event,) = FrameReader().feed(frame("throttlingException", {"message": "slow"}, "exception"))
    assert (event.event, event.data) == ("throttlingException", b'{"message": "slow"}')


@pytest.mark.parametrize("at", [0, 5, 9, 20, -20, -1])
def test_a_byte_that_changed_on_its_way_is_found(at: int) -> None:
    broken = bytearray(frame("messageStart", {}))
    broken[at] ^= 1
    with pytest.raises(BadFrame):
        FrameReader().feed(bytes(broken) + b"\x00" * 64)


def test_a_frame_is_bounded() -> None:
    with pytest.raises(BadFrame):
        FrameReader(64).feed(WHOLE)


@pytest.mark.parametrize("headers", [b"\x05ab", b"\x01a", b"\x01a\x63", b"\x01a\x07\x00\x09x", b"\x01a\x04\x00"])
def test_broken_headers_are_found(headers: bytes) -> None:
    prelude = struct.pack(">II", 16 + len(headers), len(headers))
    head = prelude + struct.pack(">I", crc32(prelude)) + headers
    with pytest.raises(BadFrame):
        FrameReader().feed(head + struct.pack(">I", crc32(head)))


def test_headers_of_other_types_are_passed_over() -> None:
    headers = b"\x01a\x00" + b"\x01b\x04\x00\x00\x00\x01" + b"\x01c\x06\x00\x01x" + b"\x0b:event-type\x07\x00\x01y"
    prelude = struct.pack(">II", 16 + len(headers), len(headers))
    head = prelude + struct.pack(">I", crc32(prelude)) + headers
    (event,) = FrameReader().feed(head + struct.pack(">I", crc32(head)))
    assert event.event == "y"


@given(st.binary(max_size=200))
def test_garbage_is_no_frame(garbage: bytes) -> None:
    with suppress(BadFrame):
        assert FrameReader().feed(garbage) == []


def test_what_came_before_a_bad_frame_is_not_lost() -> None:
    for cut in (0, 20, len(WHOLE) + 20):
        reader, broken = FrameReader(), WHOLE + WHOLE[:-1] + b"x"
        events = reader.feed(broken[:cut]) + reader.feed(broken[cut:])
        assert [event.event for event in events] == ["messageStart", "contentBlockDelta", "messageStart"]
        with pytest.raises(BadFrame):
            reader.feed(b"")
