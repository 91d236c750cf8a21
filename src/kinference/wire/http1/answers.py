"""How an answer goes onto the wire: its head, the framing of its body, its end."""

from email.utils import formatdate
from http import HTTPStatus
from typing import Final

from kinference.ids import Seconds
from kinference.ports import Headers

_STATUS_LINES: Final = {status.value: f"HTTP/1.1 {status.value} {status.phrase}".encode() for status in HTTPStatus}
_CR: Final = b"\r"[0]
_LF: Final = b"\n"[0]
"""Numbers: to look for a byte by its number is ten times as fast as by bytes of one."""
_BODILESS: Final = frozenset({204, 304})
JOINED_MAX: Final = 16 * 1024
"""Chunks up to here are copied together with their framing; larger ones are not copied."""
LAST_CHUNK: Final = b"0\r\n\r\n"
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class DateLine:
    """The `date` field, made once a second."""

    def __init__(self) -> None:
        self._second = -1
        self._line = b""

    def at(self, wall: Seconds) -> bytes:
        """The field with its line end."""
        second = int(wall)
        if second != self._second:
            self._second = second
            self._line = f"date: {formatdate(second, usegmt=True)}\r\n".encode()
        return self._line


def has_body(method: str, status: int) -> bool:
    """Whether an answer may have a body at all."""
    return method != "HEAD" and status not in _BODILESS


def head(status: int, headers: Headers, ours: bytes) -> bytes:
    """The head, ending in `ours`: complete lines. Raises ValueError for a line break inside a field."""
    status_line = _STATUS_LINES.get(status) or f"HTTP/1.1 {status} Status".encode()
    lines = [name + b": " + value for name, value in headers]
    if breaks_lines(lines):
        raise ValueError("a header field with a line break inside")
    return b"\r\n".join([status_line, *lines, ours, b""])


def breaks_lines(lines: list[bytes]) -> bool:
    """Whether one of them has the end of a line inside."""
    whole = b"".join(lines)
    return _LF in whole or _CR in whole


def chunk(piece: bytes) -> tuple[bytes, ...]:
    """A piece of a body in chunked framing, as buffers to write one after the other."""
    if len(piece) <= JOINED_MAX:
        return (b"%x\r\n%b\r\n" % (len(piece), piece),)
    return (b"%x\r\n" % len(piece), piece, b"\r\n")
