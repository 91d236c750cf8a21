"""A destination's bytes in; the head and the body of its answer out. No socket in sight.

llhttp parses, in its strict mode; on top come limits, interim answers, and answers to HEAD, which have no body
whatever their head says.
"""

from typing import Final

import httptools

from kinference.ports import Headers

_FIELD_BYTES_MAX: Final = 64 * 1024
"""Longest head; also longest trailers and longest chunk extension."""
_FIELDS_MAX: Final = 256
_AROUND: Final = len(b": \r\n")
"""Bytes of a field beside its name and value."""
_INTERIM_BELOW: Final = 200
_SWITCHING: Final = 101
_BREAKS: Final = b"\r\n"


class NotHttp(Exception):
    """What came is no answer that can be understood."""


class _Unasked(Exception):
    """Stops the parser behind the end of an answer."""


class ReplyReader:
    """The answers on one connection, one after the other: `expect` each before its bytes are fed."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        """Of the body, in order; whoever reads them takes them out."""
        self.on_body = self.pieces.append
        """For the parser, dozens of times a read: no function of ours comes in between."""
        self._parser = httptools.HttpResponseParser(self)
        self._fields: list[tuple[bytes, bytes]] = []
        self._quiet_bytes = self._fed_bytes = 0
        self._is_to_head = False
        self._ends_with_connection = False
        self.status = 0
        """0 until the head is complete."""
        self.headers: Headers = ()
        self.has_begun = False
        """Whether anything of the answer has come."""
        self.is_complete = True
        """Whether the answer has come to its end; also before the first one."""
        self.is_reusable = True
        """Whether another answer may follow on the connection."""

    def expect(self, *, to_head: bool) -> None:
        """A request has been sent."""
        self._is_to_head = to_head
        self.pieces.clear()
        self.status, self.headers = 0, ()
        self.has_begun = self.is_complete = self._ends_with_connection = False

    def feed(self, data: bytes) -> None:
        """Take bytes in. Raises NotHttp."""
        if (
            self.is_complete
        ):  # line breaks behind an answer are nothing to the parser, so neither in a read of their own
            self.is_reusable = self.is_reusable and not data.strip(_BREAKS)
            return
        if (
            data and not self.has_begun
        ):  # line breaks behind the answer before begin none, and a request may be sent again
            self.has_begun = data[0] not in _BREAKS or bool(data.strip(_BREAKS))
        status, pieces, self._fed_bytes = self.status, len(self.pieces), len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            if not self._is_unasked():
                raise NotHttp from None
            self.is_reusable = False
        if len(self.pieces) > pieces or self.is_complete or self.status != status:
            self._quiet_bytes = 0
        else:
            self._limit_quiet(len(data))

    def _is_unasked(self) -> bool:
        return self.is_complete

    def _limit_quiet(self, fed: int) -> None:
        self._quiet_bytes += fed
        if self._quiet_bytes > _FIELD_BYTES_MAX:
            raise NotHttp

    def end(self) -> bool:
        """The connection ended. Whether the answer is complete thereby."""
        self.is_reusable = False
        self.is_complete = self.is_complete or self._ends_with_connection
        return self.is_complete

    # --- called by the parser --------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._fields = []
        if self.is_complete:
            raise _Unasked

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.status:
            return  # a trailer
        if len(self._fields) >= _FIELDS_MAX:
            raise NotHttp
        self._fields.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        if self.status:
            return
        status: int = self._parser.get_status_code()
        if status == _SWITCHING:  # nobody asked for another protocol
            raise NotHttp
        if status < _INTERIM_BELOW:
            return
        if self._quiet_bytes + self._fed_bytes > _FIELD_BYTES_MAX:
            self._check_size()  # the head may be too large: it came in these bytes
        self._check_framing()
        self.status, self.headers = status, self._fields
        if self._is_to_head:
            self.is_complete = True
            raise _Unasked  # what follows: a body that comes all the same would be taken for the next answer

    def _check_size(self) -> None:
        """However it was cut: in one read a longer one would pass."""
        if sum(len(name) + len(value) + _AROUND for name, value in self._fields) > _FIELD_BYTES_MAX:
            raise NotHttp

    def _check_framing(self) -> None:
        """Read how the body ends; a coding that we cannot undo, or undo differently than others would, is refused."""
        is_framed = False
        for name, value in self._fields:
            if name == b"transfer-encoding" and value.lower() != b"chunked":
                raise NotHttp
            is_framed = is_framed or name in {b"transfer-encoding", b"content-length"}
        self._ends_with_connection = not is_framed

    def on_message_complete(self) -> None:
        if not self.status:
            return  # an interim answer
        self.is_complete = True
        self.is_reusable = self.is_reusable and self._parser.should_keep_alive()
