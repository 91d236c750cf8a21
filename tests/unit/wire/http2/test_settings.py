"""The peer's settings."""

from struct import pack

import pytest

from kinference.wire.http2.frames import ConnectionFault, ErrorCode
from kinference.wire.http2.settings import PeerSettings, Setting, merged


def payload(*pairs: tuple[int, int]) -> bytes:
    return b"".join(pack(">HI", *pair) for pair in pairs)


def test_what_is_not_told_stays() -> None:
    told = merged(PeerSettings(), payload((Setting.INITIAL_WINDOW_SIZE, 10)))
    assert told == PeerSettings(window=10)
    assert merged(told, payload((Setting.MAX_FRAME_SIZE, 20_000))) == PeerSettings(window=10, frame_bytes=20_000)


def test_the_last_of_a_repeated_setting_wins() -> None:
    assert merged(PeerSettings(), payload((4, 1), (4, 2))).window == 2


def test_a_setting_that_nobody_knows_is_ignored() -> None:
    assert merged(PeerSettings(), payload((0x99, 7), (Setting.MAX_CONCURRENT_STREAMS, 1))) == PeerSettings()


@pytest.mark.parametrize(
    ("setting", "value", "code"),
    [
        (Setting.ENABLE_PUSH, 2, ErrorCode.PROTOCOL_ERROR),
        (Setting.INITIAL_WINDOW_SIZE, 2**31, ErrorCode.FLOW_CONTROL_ERROR),
        (Setting.MAX_FRAME_SIZE, 16_383, ErrorCode.PROTOCOL_ERROR),
        (Setting.MAX_FRAME_SIZE, 2**24, ErrorCode.PROTOCOL_ERROR),
    ],
)
def test_a_value_out_of_its_range_is_a_fault(setting: Setting, value: int, code: ErrorCode) -> None:
    with pytest.raises(ConnectionFault) as caught:
        merged(PeerSettings(), payload((setting, value)))
    assert caught.value.code is code


def test_a_broken_length_is_a_fault() -> None:
    with pytest.raises(ConnectionFault, match="FRAME_SIZE_ERROR"):
        merged(PeerSettings(), b"\0\1\0\0\0")
