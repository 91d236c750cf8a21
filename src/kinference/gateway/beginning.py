"""The beginning of a destination's answer as it is held until the client may hear of it, and made plain where it came
compressed though nobody asked for that. `opening` waits for it.
"""

import re
import zlib
from collections import deque
from typing import Any, Final

from kinference.errors import UpstreamCut
from kinference.gateway.headers import is_stream
from kinference.ports import Headers
from kinference.wire.fields import header

_GZIP_MARK: Final = b"\x1f"
"""Begins what gzip makes, and no text."""
_GZIP_OR_ZLIB: Final = zlib.MAX_WBITS | 32
_PIECE_MAX: Final = 1024 * 1024
_JSON: Final = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*(?:[{\[]|\Z)")
"""How an answer in one piece begins, which some pad with blanks until they have it."""
_CODINGS: Final[tuple[bytes, ...]] = (b"gzip", b"x-gzip", b"deflate")


class Beginning:
    """What was read ahead of an answer, and its head as it then is."""

    def __init__(self, headers: Headers, *, is_read: bool) -> None:
        """`is_read`: the answer is to be translated, so that it has to be plain whatever its head says."""
        self.headers = headers
        self.held: deque[bytes] = deque()
        self._inflater: Any = None
        self._is_first = True
        coding = header(headers, b"content-encoding")
        self.is_stream = is_stream(header(headers, b"content-type"))
        self._is_plain = coding is None
        if is_read and coding is not None and coding.lower() != b"identity":
            if coding.lower() not in _CODINGS:
                raise UpstreamCut("the destination sent a content coding that nobody asked for")
            self._inflate()

    def is_over(self) -> bool:
        """Whether what comes now is passed on as it comes."""
        return not self._is_first and self._inflater is None

    def could_be_json(self) -> bool:
        """Whether what is held begins like JSON: a page of some proxy's does not, whatever its status says."""
        is_readable = self._is_plain or self._inflater is not None
        return not is_readable or not self.held or _JSON.match(self.held[0]) is not None

    def begin_with(self, chunk: bytes | None) -> None:
        """The first of an answer in one piece has come. Raises UpstreamCut where there is none or where it is of no
        JSON, which no client of any API could read.
        """
        if chunk is None:
            raise UpstreamCut("the destination answered with nothing")
        self.hold(chunk)
        if not self.could_be_json():
            raise UpstreamCut("the destination answered with something that is not JSON")

    def hold(self, chunk: bytes) -> list[bytes]:
        """Some of it has come. Returns it in the plain. Raises UpstreamCut."""
        pieces = self._plain(chunk)
        self.held += pieces
        return pieces

    def _inflate(self) -> None:
        self._inflater = zlib.decompressobj(_GZIP_OR_ZLIB)
        self.headers = [field for field in self.headers if field[0] not in (b"content-encoding", b"content-length")]

    def _plain(self, chunk: bytes) -> list[bytes]:
        if self._is_first and chunk:
            self._is_first = False
            if self._is_plain and chunk.startswith(_GZIP_MARK):
                self._inflate()
        return [chunk] if self._inflater is None else self._inflated(chunk)

    def _inflated(self, chunk: bytes) -> list[bytes]:
        pieces: list[bytes] = []
        while chunk:
            try:
                piece: bytes = self._inflater.decompress(chunk, _PIECE_MAX)
            except zlib.error:
                raise UpstreamCut("the destination sent a compressed answer that cannot be read") from None
            if piece:
                pieces.append(piece)
            chunk = self._inflater.unconsumed_tail
        return pieces
