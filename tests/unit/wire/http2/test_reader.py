"""Frames come whole and in their order, however their bytes come, and header blocks in one piece."""

import pytest

from kinference.wire.http2 import frames
from kinference.wire.http2.frames import (
    END_HEADERS,
    END_STREAM,
    PADDED,
    PREFACE,
    PRIORITY_FIELDS,
    ConnectionFault,
    ErrorCode,
    FrameType,
    StreamFault,
    frame,
    settings,
)
from kinference.wire.http2.guard import Guard, Http2Limits, Nuisance, Rate
from kinference.wire.http2.reader import Callbacks, FrameReader, OnFrame, all_data

GREETING = PREFACE + settings({})
LIMITS = Http2Limits(frame_bytes_max=16_384, header_block_bytes_max=100)


class Noted:
    """What a reader told; frames on stream 9 are faults of that stream."""

    def __init__(self, limits: Http2Limits = LIMITS, greeting: bytes = GREETING) -> None:
        self.told: list[tuple[object, ...]] = []
        plain = [kind for kind in FrameType if kind not in {FrameType.HEADERS, FrameType.CONTINUATION}]
        on_frame: dict[FrameType, OnFrame] = {kind: self._teller(kind) for kind in plain}
        callbacks = Callbacks(self._on_block, self._on_request, self._on_fault)
        self.reader = FrameReader(limits, Guard(limits.rates, 0.0), on_frame, callbacks)
        self.feed(greeting)
        self.told.clear()

    def _teller(self, kind: FrameType) -> OnFrame:
        def tell(flags: int, stream_id: int, payload: bytes) -> None:
            if stream_id == 9:
                raise StreamFault(ErrorCode.STREAM_CLOSED, "stream 9")
            self.told.append((kind, flags, stream_id, payload))

        return tell

    def _on_block(self, stream_id: int, block: bytes, ended: bool) -> None:
        self.told.append(("block", stream_id, block, ended))

    def _on_request(self, buffer: bytes, at: int) -> int:
        """Takes all DATA with the block, but for that of stream 7, which is left; 11 is refused as a whole."""
        size, _, stream_id = frames.HEADER.unpack_from(buffer, at)
        stop = at + 9 + (size >> 8)
        whole = all_data(buffer, stop, stream_id, LIMITS.frame_bytes_max << 8 | 0xFF)
        if stream_id == 11:
            raise StreamFault(ErrorCode.REFUSED_STREAM, "stream 11")
        if whole is None or stream_id == 7:
            return at
        self.told.append(("whole", stream_id, buffer[at + 9 : stop], whole[0]))
        return whole[1]

    def _on_fault(self, stream_id: int, code: ErrorCode) -> None:
        self.told.append(("fault", stream_id, code))

    def feed(self, data: bytes, size: int = 1 << 20) -> None:
        for at in range(0, len(data), size):
            self.reader.feed(data[at : at + size], 0.0)


def request(stream_id: int, block: bytes = b"block", flags: int = END_HEADERS) -> bytes:
    return frame(FrameType.HEADERS, flags, stream_id, block)


def body(stream_id: int, flags: int = END_STREAM, payload: bytes = b"data") -> bytes:
    return frame(FrameType.DATA, flags, stream_id, payload)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (
            request(1) + body(1) + request(3) + body(3, payload=b""),
            [("whole", 1, b"block", b"data"), ("whole", 3, b"block", b"")],
        ),
        (request(1) + body(1, 0) + body(1, payload=b""), [("whole", 1, b"block", b"data")]),
        (request(1) + body(1, 0, b"a") + body(1, 0, b"b") + body(1), [("whole", 1, b"block", b"abdata")]),
        (
            request(1) + body(1, 0) + body(3, 0) + body(1),
            [
                ("block", 1, b"block", False),
                *(
                    (FrameType.DATA, flags, stream_id, b"data")
                    for stream_id, flags in ((1, 0), (3, 0), (1, END_STREAM))
                ),
            ],
        ),
        (
            request(1) + body(1, 0, b"") + body(1),
            [
                ("block", 1, b"block", False),
                (FrameType.DATA, 0, 1, b""),
                (FrameType.DATA, END_STREAM, 1, b"data"),
            ],
        ),
        (request(7) + body(7), [("block", 7, b"block", False), (FrameType.DATA, END_STREAM, 7, b"data")]),
        (request(1) + body(3), [("block", 1, b"block", False), (FrameType.DATA, END_STREAM, 3, b"data")]),
        (request(1) + body(1, 0), [("block", 1, b"block", False), (FrameType.DATA, 0, 1, b"data")]),
        (
            request(1) + body(1, END_STREAM | PADDED, b"\1d\0"),
            [("block", 1, b"block", False), (FrameType.DATA, END_STREAM | PADDED, 1, b"\1d\0")],
        ),
        (
            request(1, flags=END_HEADERS | END_STREAM) + body(1),
            [("block", 1, b"block", True), (FrameType.DATA, END_STREAM, 1, b"data")],
        ),
        (
            request(1) + frame(FrameType.RST_STREAM, 1, 1, bytes(4)),
            [("block", 1, b"block", False), (FrameType.RST_STREAM, 1, 1, bytes(4))],
        ),
        (
            request(11) + body(11),
            [("fault", 11, ErrorCode.REFUSED_STREAM), (FrameType.DATA, END_STREAM, 11, b"data")],
        ),
    ],
)
def test_a_request_is_told_with_all_its_data_where_that_is_right_behind(
    data: bytes, told: list[tuple[object, ...]]
) -> None:
    noted = Noted()
    noted.feed(data)
    assert noted.told == told


@pytest.mark.parametrize("first", [b"", body(1, 0, b"more")])
def test_a_request_that_is_cut_within_its_data_is_told_in_steps(first: bytes) -> None:
    noted, whole = Noted(), request(1) + first + body(1)
    noted.feed(whole, len(whole) - 1)
    more = [(FrameType.DATA, 0, 1, b"more")] if first else []
    assert noted.told == [("block", 1, b"block", False), *more, (FrameType.DATA, END_STREAM, 1, b"data")]


def failing(data: bytes, limits: Http2Limits = LIMITS, greeting: bytes = GREETING) -> ErrorCode:
    with pytest.raises(ConnectionFault) as caught:
        Noted(limits, greeting).feed(data)
    return caught.value.code


@pytest.mark.parametrize("size", [1, 2, 9, 13, 1000])
def test_frames_are_told_whole_however_their_bytes_come(size: int) -> None:
    noted = Noted()
    noted.feed(frame(FrameType.DATA, 1, 3, b"x" * 20) + frame(FrameType.PING, 0, 0, b"12345678"), size)
    assert noted.told == [(FrameType.DATA, 1, 3, b"x" * 20), (FrameType.PING, 0, 0, b"12345678")]


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_a_header_block_is_told_of_whole(size: int) -> None:
    noted = Noted()
    noted.feed(
        frame(FrameType.HEADERS, END_STREAM, 1, b"ab")
        + frame(FrameType.CONTINUATION, 0, 1, b"cd")
        + frame(FrameType.CONTINUATION, END_HEADERS, 1, b"e")
        + frame(FrameType.HEADERS, END_HEADERS, 3, b"f"),
        size,
    )
    assert noted.told == [("block", 1, b"abcde", True), ("block", 3, b"f", False)]


def test_padding_and_priority_are_no_part_of_a_block() -> None:
    noted = Noted()
    flags = END_HEADERS | PADDED | PRIORITY_FIELDS
    noted.feed(frame(FrameType.HEADERS, flags, 1, b"\x02" + b"\0" * frames.PRIORITY_BYTES + b"ab" + b"\0\0"))
    assert noted.told == [("block", 1, b"ab", False)]


def test_a_stream_s_fault_is_told_and_the_frames_behind_it_read() -> None:
    noted = Noted()
    noted.feed(frame(FrameType.DATA, 0, 9, b"x") + frame(FrameType.DATA, 0, 1, b"y"))
    assert noted.told == [("fault", 9, ErrorCode.STREAM_CLOSED), (FrameType.DATA, 0, 1, b"y")]


def test_a_stream_s_fault_is_counted_by_its_code() -> None:
    limits = Http2Limits(frame_bytes_max=16_384)
    Noted(limits).feed(frame(FrameType.DATA, 0, 9, b"x") + frame(FrameType.DATA, 0, 1, b"y"))
    assert limits.tally.resets == {"stream_closed": 1}


def test_a_frame_of_an_unknown_type_is_passed_over_and_the_reserved_bit_of_a_stream_ignored() -> None:
    noted = Noted()
    noted.feed(b"\0\0\1\x77\0\0\0\0\1x" + b"\0\0\1\0\0\x80\0\0\1y")
    assert noted.told == [(FrameType.DATA, 0, 1, b"y")]


def test_it_is_known_whether_the_peer_s_settings_have_come() -> None:
    noted = Noted(greeting=PREFACE)
    assert not noted.reader.is_settled
    noted.feed(settings({}))
    assert noted.reader.is_settled


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (frame(FrameType.DATA, 0, 1, b"x" * 16_385), ErrorCode.FRAME_SIZE_ERROR),
        (frame(FrameType.CONTINUATION, END_HEADERS, 1, b"x"), ErrorCode.PROTOCOL_ERROR),
        (frame(FrameType.HEADERS, 0, 1, b"x") + frame(FrameType.DATA, 0, 1, b"y"), ErrorCode.PROTOCOL_ERROR),
        (frame(FrameType.HEADERS, 0, 1, b"x") + frame(FrameType.CONTINUATION, 4, 3, b"y"), ErrorCode.PROTOCOL_ERROR),
        (frame(FrameType.HEADERS, END_HEADERS | PRIORITY_FIELDS, 1, b"x"), ErrorCode.FRAME_SIZE_ERROR),
        (
            frame(FrameType.HEADERS, END_HEADERS | PRIORITY_FIELDS | PADDED, 1, b"\x06" + bytes(7)),
            ErrorCode.PROTOCOL_ERROR,
        ),
        (
            frame(FrameType.HEADERS, 0, 1, b"x" * 60) + frame(FrameType.CONTINUATION, 0, 1, b"y" * 60),
            ErrorCode.ENHANCE_YOUR_CALM,
        ),
    ],
    ids=["too-large", "of-nothing", "broken-off", "of-another", "no-priority", "padded-away", "endless"],
)
def test_what_breaks_the_order_of_frames_ends_the_connection(data: bytes, code: ErrorCode) -> None:
    assert failing(data) is code


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nhost: h\r\n\r\n",
        PREFACE + frame(FrameType.PING, 0, 0, bytes(8)),
        PREFACE + frame(FrameType.SETTINGS, frames.ACK, 0),
    ],
    ids=["another-protocol", "not-settings", "an-acknowledgement"],
)
def test_a_connection_begins_with_the_preface_and_settings(data: bytes) -> None:
    assert failing(data, greeting=b"") is ErrorCode.PROTOCOL_ERROR


@pytest.mark.parametrize(
    ("kind", "flood"),
    [
        (Nuisance.FAULT, frame(FrameType.DATA, 0, 9, b"x")),
        (Nuisance.CONTROL, b"\0\0\0\x77\0\0\0\0\1"),
        (Nuisance.EMPTY, frame(FrameType.HEADERS, 0, 1) + frame(FrameType.CONTINUATION, 4, 1)),
    ],
)
def test_frames_that_cost_their_sender_nothing_are_counted(kind: Nuisance, flood: bytes) -> None:
    rates = {each: Rate(3 if each is kind else 1000, 0) for each in Nuisance}
    assert failing(flood * 4, Http2Limits(rates=rates)) is ErrorCode.ENHANCE_YOUR_CALM
