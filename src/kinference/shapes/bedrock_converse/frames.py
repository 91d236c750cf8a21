"""AWS's binary event stream: frames of headers and a payload, each under two checksums."""

import struct
from binascii import crc32
from typing import Final

from kinference.shapes.json_text import dumps
from kinference.shapes.sse import EVENT_BYTES_MAX, BadFrame, Event

_PRELUDE: Final = struct.Struct(">III")
"""Length of the frame, length of its headers, checksum of these two."""
_CRC: Final = struct.Struct(">I")
_FIXED_VALUES: Final = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Sizes of header values by type; those of bytes (6) and strings (7) say their own."""
_SIZED: Final = (6, 7)
_EXCEPTION: Final = "exception"
_OVERHEAD: Final = _PRELUDE.size + _CRC.size


class FrameReader:
    """Cuts a stream into events, named by their headers."""

    def __init__(self, event_bytes_max: int = EVENT_BYTES_MAX) -> None:
        self._event_bytes_max = event_bytes_max
        self._buffer = bytearray()
        self._bad: BadFrame | None = None

    def feed(self, chunk: bytes) -> list[Event]:
        """Every event that this chunk completes. Raises BadFrame, after those that came before it were given."""
        if self._bad is not None:
            raise self._bad
        self._buffer += chunk
        events: list[Event] = []
        begin = 0
        try:
            while (length := self._length(begin)) and len(self._buffer) - begin >= length:
                events.append(_event(bytes(self._buffer[begin : begin + length])))
                begin += length
        except BadFrame as bad:
            if not events:
                raise
            self._bad = bad
        del self._buffer[:begin]
        return events

    def tail(self) -> Event | None:
        """Nothing: half a frame tells nothing."""
        return None

    def _length(self, begin: int) -> int:
        """The length of the frame that begins here; 0 while its prelude is not all there."""
        if len(self._buffer) - begin < _PRELUDE.size:
            return 0
        length, headers, checksum = _PRELUDE.unpack_from(self._buffer, begin)
        if crc32(self._buffer[begin : begin + 8]) != checksum:
            raise BadFrame("a frame of the event stream fails its checksum")
        if not _OVERHEAD + headers <= length <= self._event_bytes_max:
            raise BadFrame(f"a frame of the event stream over {self._event_bytes_max} bytes, or with wrong lengths")
        return int(length)


def _event(frame: bytes) -> Event:
    if crc32(frame[: -_CRC.size]) != _CRC.unpack_from(frame, len(frame) - _CRC.size)[0]:
        raise BadFrame("a frame of the event stream fails its checksum")
    after_headers = _PRELUDE.size + _PRELUDE.unpack_from(frame)[1]
    headers = _headers(frame[_PRELUDE.size : after_headers])
    if headers.get(":message-type") == "error":
        return _error(headers, frame)
    name = headers.get(":exception-type") or headers.get(":event-type", "")
    return Event(name, frame[after_headers : -_CRC.size], frame)


def _error(headers: dict[str, str], frame: bytes) -> Event:
    """An error of the service that its model does not list: it is in the headers alone, and here as an exception is."""
    code = headers.get(":error-code", "")
    name = code if code.lower().endswith(_EXCEPTION) else f"{code}{_EXCEPTION.title()}"
    return Event(name, dumps({"message": headers.get(":error-message", "")}), frame)


def _headers(text: bytes) -> dict[str, str]:
    """The headers that are strings."""
    found: dict[str, str] = {}
    try:
        at = 0
        while at < len(text):
            name_end = at + 1 + text[at]
            name, kind, at = text[at + 1 : name_end], text[name_end], name_end + 1
            size = _FIXED_VALUES.get(kind)
            if kind in _SIZED:
                size, at = int.from_bytes(text[at : at + 2]), at + 2
            if size is None or at + size > len(text):
                raise BadFrame("a frame of the event stream has a header of no known type")
            if kind == 7:  # noqa: PLR2004 - a string, as the format numbers it
                found[name.decode(errors="replace")] = text[at : at + size].decode(errors="replace")
            at += size
    except IndexError:
        raise BadFrame("a frame of the event stream has half a header") from None
    return found
