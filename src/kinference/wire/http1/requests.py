"""A client's bytes in; request heads, body pieces and ends out, or what is wrong with them. No socket in sight.

llhttp parses, in its strict mode: it refuses two framings or two lengths, folded fields, bare line feeds, space before
a colon, control bytes. On top come the checks that it leaves to its user, and every limit.
"""

from enum import Enum, auto
from typing import Final, TypeAlias

import httptools

from kinference.ports import Headers
from kinference.structs import FrozenLeaf
from kinference.wire.server_options import HttpServerOptions

_VERSIONS: Final = frozenset({"1.0", "1.1"})
_HASH: Final = b"#"[0]
"""A number: to look for a byte by its number is ten times as fast as by bytes of one."""


class RequestHead(FrozenLeaf, frozen=True):
    """Everything of a request before its body."""

    method: str
    target: str
    headers: Headers
    is_http_1_1: bool
    keeps_alive: bool
    has_body: bool


class Malformed(FrozenLeaf, frozen=True):
    """What cannot be read as a request. Nothing is read after it."""

    status: int
    text: str


class End(Enum):
    """The last byte of a request has been read."""

    OF_REQUEST = auto()


Event: TypeAlias = RequestHead | bytes | End | Malformed

_END: Final = End.OF_REQUEST
_MALFORMED: Final = Malformed(400, "malformed request")
_TOO_LARGE: Final = Malformed(431, "request head too large")


class _Refused(Exception):
    """Stops the parser; the reason is in the reader."""


class RequestReader:
    """The requests of one connection, one after the other."""

    def __init__(self, options: HttpServerOptions) -> None:
        self._options = options
        self._pieces: list[bytes] = []
        self.on_body = self._pieces.append  # for the parser: no function of ours comes in between
        self._parser = httptools.HttpRequestParser(self)
        self._events: list[Event] = []
        self._refusal = _MALFORMED
        self._target = b""
        self._fields: list[tuple[bytes, bytes]] = []
        self._framing = b""
        self._length = 0
        """What is yet to come of a body whose length was told."""
        self._in_body = False
        self._passes_parser = False
        self._is_last = False
        self._replays_head = False
        self._quiet_bytes = 0
        """Bytes fed since something last came out: of a head, of trailers or of chunk extensions."""
        self._fed_bytes = 0
        """The same with the read of which it came, in which the head that follows may have begun."""
        self.is_within_head = False
        """Whether part of a head has come, and not all of it."""
        self.is_over = False
        """Whether nothing more is read: after the last request that the client announced, or a malformed one."""

    def feed(self, data: bytes) -> list[Event]:
        """What these bytes complete. The pieces of a body that came together go out as one."""
        if self.is_over:
            return []
        if self._passes_parser:
            return self._pass_body(data)
        events: list[Event] = []
        self._events = events
        self._quiet_bytes += len(data)
        self._fed_bytes += len(data)
        rest = self._parse(data)
        while rest:
            rest = self._parse(rest)
        if events:
            self._quiet_bytes, self._fed_bytes = 0, len(data)
        elif self._quiet_bytes > self._options.field_bytes_max * (1 + self.is_within_head):
            self._fail(_TOO_LARGE)  # twice for a head: white space and colons come on top of what `_check_size` counts
        self._passes_parser = self._in_body and self._length > 0
        return events

    def _pass_body(self, data: bytes) -> list[Event]:
        """More of a body whose length was told: its bytes are what they are, and the parser would copy each."""
        length, size = self._length, len(data)
        if size < length:
            self._length = length - size
            return [data]
        self._passes_parser, self._in_body, self.is_over = False, False, self._is_last
        self._parser = httptools.HttpRequestParser(self)
        self._quiet_bytes = self._fed_bytes = self._length = 0
        if size == length:
            return [data, _END]
        return [data[:length], _END, *self.feed(data[length:])]

    def _parse(self, data: bytes | memoryview) -> memoryview | None:
        """Feed the parser. Returns what it has left: all behind a head that offers to upgrade."""
        rest: memoryview | None = None
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            rest = memoryview(data)[upgrade.args[0] :]
            self._pass_upgrade_over()
        except httptools.HttpParserError:
            if self._pieces:
                self._flush()
            if not self.is_over:  # what follows an announced end is nobody's business
                self._fail(self._refusal)
        if self._pieces:
            self._flush()
        return rest

    def _fail(self, refusal: Malformed) -> None:
        self._events.append(refusal)
        self.is_over = True

    def _flush(self) -> None:
        pieces = self._pieces
        piece = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self._length -= len(piece)
        self._events.append(piece)
        pieces.clear()

    def _pass_upgrade_over(self) -> None:
        """Go on as HTTP/1.1, which a server may: the parser alone would take the body for another protocol's bytes."""
        self._parser = httptools.HttpRequestParser(self)
        self._replays_head = True
        ending = b"connection: close\r\n" if self._is_last else b""
        self._parser.feed_data(b"POST / HTTP/1.1\r\n" + self._framing + ending + b"\r\n")

    # --- called by the parser --------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if not self._replays_head:
            self._target, self._fields, self._in_body, self.is_within_head = b"", [], False, True

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_body:
            return  # a trailer, which nobody here asks for
        if len(self._fields) > self._options.fields_max:
            return  # refused at the head's end: a cut moves when a field is told, and must not change the answer
        self._fields.append((name.lower(), value.rstrip(b" \t") if name != b"transfer-encoding" else value))

    def on_headers_complete(self) -> None:
        if self._replays_head:
            self._replays_head = False
            return
        self._in_body, self.is_within_head = True, False
        self._events.append(self._head())

    def on_message_complete(self) -> None:
        if self._parser.should_upgrade():
            return
        if self._pieces:
            self._flush()
        self._events.append(_END)
        self._in_body = False
        self.is_over = self._is_last

    # --- the head --------------------------------------------------------------------------------

    def _head(self) -> RequestHead:
        version, method = self._parser.get_http_version(), self._parser.get_method().decode("ascii")
        if self._fed_bytes > self._options.field_bytes_max or len(self._fields) > self._options.fields_max:
            self._check_size()  # the head may be too large: it began in these bytes
        if version not in _VERSIONS or method == "CONNECT" or _HASH in self._target:
            raise _Refused
        if self._target == b"*" and method != "OPTIONS":
            raise _Refused
        is_http_1_1 = version == "1.1"
        has_body = self._check_framing(is_http_1_1)
        keeps_alive = self._parser.should_keep_alive()
        self._is_last = not keeps_alive
        target = self._target.decode("ascii")
        return RequestHead(method, target, self._fields, is_http_1_1, keeps_alive, has_body)

    def _check_size(self) -> None:
        options = self._options
        size = len(self._target) + sum(len(name) + len(value) for name, value in self._fields)
        if size > options.field_bytes_max or len(self._fields) > options.fields_max:
            self._refusal = _TOO_LARGE
            raise _Refused

    def _check_framing(self, is_http_1_1: bool) -> bool:
        """Whether a body follows. One host, and one framing that nobody between us and the client reads otherwise."""
        hosts, framing, has_body, length = 0, b"", False, b""
        for name, value in self._fields:
            if name == b"host":
                hosts += 1
            elif name == b"content-length":
                length = value.lstrip(b"0")
                framing, has_body = b"content-length: " + value + b"\r\n", length != b""
            elif name == b"transfer-encoding":
                if framing or value.lower() != b"chunked" or not is_http_1_1:
                    raise _Refused
                framing, has_body = b"transfer-encoding: chunked\r\n", True
        if hosts > 1 or (is_http_1_1 and not hosts):
            raise _Refused
        self._framing, self._length = framing, int(length or b"0")
        return has_body
