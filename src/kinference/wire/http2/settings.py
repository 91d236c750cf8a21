"""SETTINGS: what the peer asks of us, and what we ask of it (RFC 9113, section 6.5)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from struct import Struct

from kinference.wire.http2.frames import FRAME_BYTES_DEFAULT, WINDOW_DEFAULT, WINDOW_MAX, ConnectionFault, ErrorCode

_SETTING = Struct(">HI")


class Setting(IntEnum):
    HEADER_TABLE_SIZE = 1
    ENABLE_PUSH = 2
    MAX_CONCURRENT_STREAMS = 3
    INITIAL_WINDOW_SIZE = 4
    MAX_FRAME_SIZE = 5
    MAX_HEADER_LIST_SIZE = 6


@dataclass(frozen=True, slots=True)
class PeerSettings:
    """What the peer has told, as far as a server that pushes nothing and fills no table needs it."""

    header_table_bytes: int = 4096
    window: int = WINDOW_DEFAULT
    frame_bytes: int = FRAME_BYTES_DEFAULT


FIELDS = {
    Setting.HEADER_TABLE_SIZE: "header_table_bytes",
    Setting.INITIAL_WINDOW_SIZE: "window",
    Setting.MAX_FRAME_SIZE: "frame_bytes",
}
RANGES = {
    Setting.ENABLE_PUSH: (0, 1, ErrorCode.PROTOCOL_ERROR),
    Setting.INITIAL_WINDOW_SIZE: (0, WINDOW_MAX, ErrorCode.FLOW_CONTROL_ERROR),
    Setting.MAX_FRAME_SIZE: (FRAME_BYTES_DEFAULT, 2**24 - 1, ErrorCode.PROTOCOL_ERROR),
}
"""Values that are allowed, and the error of one that is not."""


def merged(current: PeerSettings, payload: bytes) -> PeerSettings:
    """The settings after a frame with this payload. Settings that nobody knows are ignored, as the RFC says."""
    for number, value in _pairs(payload):
        lowest, highest, code = RANGES.get(number, (0, 2**32 - 1, ErrorCode.PROTOCOL_ERROR))  # type: ignore[call-overload] # a number is as good a key as its name
        if not lowest <= value <= highest:
            raise ConnectionFault(code, f"setting {number} may not be {value}")
        field = FIELDS.get(number)  # type: ignore[call-overload] # a number is as good a key as its name
        if field is not None:
            current = replace(current, **{field: value})
    return current


def _pairs(payload: bytes) -> Iterator[tuple[int, int]]:
    if len(payload) % _SETTING.size:
        raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "SETTINGS of a broken length")
    return _SETTING.iter_unpack(payload)
