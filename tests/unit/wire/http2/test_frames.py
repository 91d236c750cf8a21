"""Writing frames and the small parts of reading them."""

import pytest

from kinference.wire.http2 import frames
from kinference.wire.http2.frames import ConnectionFault, ErrorCode, FrameType


def test_a_frame_is_its_nine_bytes_and_its_payload() -> None:
    assert frames.frame(FrameType.DATA, 1, 5, b"hi") == bytes.fromhex("000002 00 01 00000005") + b"hi"


def test_settings_are_pairs_of_number_and_value() -> None:
    assert frames.settings({4: 65_536}) == bytes.fromhex("000006 04 00 00000000 0004 00010000")


def test_the_frames_of_four_bytes() -> None:
    assert frames.window_update(3, 10) == bytes.fromhex("000004 08 00 00000003 0000000a")
    assert frames.rst_stream(3, 8) == bytes.fromhex("000004 03 00 00000003 00000008")


def test_a_header_block_goes_whole() -> None:
    assert frames.headers(frames.END_STREAM, 1, b"\x88") == bytes.fromhex("000001 01 05 00000001 88")


@pytest.mark.parametrize(("size", "pieces"), [(4, [4]), (5, [4, 1]), (12, [4, 4, 4])])
def test_a_header_block_larger_than_a_frame_goes_on_in_others(size: int, pieces: list[int]) -> None:
    sent, at, found = frames.headers(frames.END_STREAM, 1, b"x" * size, 4), 0, []
    while at < len(sent):
        length, flags, _ = frames.HEADER.unpack_from(sent, at)
        at += 9 + (length >> 8)
        found.append((length >> 8, length & 0xFF, bool(flags & frames.END_HEADERS), flags & frames.END_STREAM))
    kinds = [FrameType.HEADERS, *[FrameType.CONTINUATION] * (len(pieces) - 1)]
    assert [size for size, *_ in found] == pieces
    assert [kind for _, kind, *_ in found] == kinds
    assert [ends for *_, ends, _ in found] == [False] * (len(pieces) - 1) + [True]
    assert [last for *_, last in found] == [1] + [0] * (len(pieces) - 1)


def test_goaway_says_why() -> None:
    assert frames.goaway(7, 1, "why") == bytes.fromhex("00000b 07 00 00000000 00000007 00000001") + b"why"


@pytest.mark.parametrize(
    ("payload", "left"), [(b"\x00abc", b"abc"), (b"\x02abc", b"a"), (b"\x03abc", b""), (b"\0", b"")]
)
def test_padding_is_taken_off(payload: bytes, left: bytes) -> None:
    assert frames.unpadded(payload) == left


@pytest.mark.parametrize(
    ("payload", "code"), [(b"", ErrorCode.FRAME_SIZE_ERROR), (b"\x04abc", ErrorCode.PROTOCOL_ERROR)]
)
def test_padding_that_cannot_be_is_a_fault(payload: bytes, code: ErrorCode) -> None:
    with pytest.raises(ConnectionFault) as caught:
        frames.unpadded(payload)
    assert caught.value.code is code


def test_the_reserved_bit_is_ignored() -> None:
    assert frames.u31(b"\x80\0\0\x07") == 7
