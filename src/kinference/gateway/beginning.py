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
from kinference.shapes.dialects import Reader
from kinference.shapes.preamble import is_preamble
from kinference.shapes.sse import Event, EventTooLong
from kinference.shapes.translate import DESTINATIONS
from kinference.vocabulary import Api
from kinference.wire.fields import header

_GZIP_MARK: Final = b"\x1f"
"""Begins what gzip makes, and no text."""
_GZIP_OR_ZLIB: Final = zlib.MAX_WBITS | 32
_PIECE_MAX: Final = 1024 * 1024
_JSON: Final = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*(?:[{\[]|\Z)")
"""How an answer in one piece begins, which some pad with blanks until they have it."""
_CODINGS: Final[tuple[bytes, ...]] = (b"gzip", b"x-gzip", b"deflate")


HELD_MAX: Final = 256 * 1024
CHUNKS_MAX: Final = 64
"""Longer beginnings of streams, and ones in more pieces, are let through as they are."""
_EVENT_END: Final = b"\n\n"


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


class Overture:
    """What a stream says before it says something of its answer: until then another destination can still be asked."""

    first: Event | None = None
    """The first event that says something."""
    failure: UpstreamCut | None = None
    """Why it is no stream."""

    def __init__(self, api: Api) -> None:
        """`api`: the shape of its events."""
        self._api = api
        self._reader: Reader = DESTINATIONS[api].reader()
        self._chunks = self._bytes = 0

    @property
    def is_over(self) -> bool:
        """Whether the client is to hear of it, or of its failure, whatever it says."""
        return (
            self.first is not None or self.failure is not None or self._chunks >= CHUNKS_MAX or self._bytes >= HELD_MAX
        )

    def take(self, size: int, pieces: list[bytes]) -> None:
        """So many bytes have come, which are these in the plain."""
        self._chunks += 1
        self._bytes += size
        try:
            for piece in pieces:
                if self._is_found_in(piece):
                    return
        except EventTooLong as error:
            self.failure = UpstreamCut(str(error))

    def _is_found_in(self, piece: bytes) -> bool:
        """What comes after the first event need not be taken apart for that."""
        begin = 0
        while begin < len(piece):
            cut = piece.find(_EVENT_END, begin) + len(_EVENT_END)
            end = cut if cut >= len(_EVENT_END) else len(piece)
            for event in self._reader.feed(piece[begin:end]):
                if self._is_telling(event):
                    self.first = event
                    return True
            begin = end
        return False

    def end(self) -> None:
        """The stream has ended."""
        tail = self._reader.tail()
        if tail is not None and self._is_telling(tail):
            self.first = tail
        else:
            self.failure = UpstreamCut("the destination ended its stream before it began")

    def _is_telling(self, event: Event) -> bool:
        return bool(event.data or event.event) and not is_preamble(self._api, event)
