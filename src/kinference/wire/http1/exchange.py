"""One request and its answer as a handler sees them, on our own HTTP/1.1 connection."""

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol

from kinference.errors import ClientGone
from kinference.ids import Seconds
from kinference.ports import Headers
from kinference.wire.exchange import Exchange, header
from kinference.wire.http1 import answers
from kinference.wire.http1.requests import RequestHead

BODY_HELD_MAX = 256 * 1024
"""Body bytes that may wait for the handler before the client is made to wait."""


class Line(Protocol):
    """What an exchange needs of its connection."""

    @property
    def peer(self) -> str: ...
    @property
    def is_draining(self) -> bool: ...
    @property
    def is_lost(self) -> bool: ...
    @property
    def is_congested(self) -> bool: ...
    def send(self, piece: bytes) -> None:
        """Write, at the end of the event loop's round at the latest."""
        ...

    async def drained(self) -> None:
        """Wait until the client has taken most of what was written, or is gone."""
        ...

    def date(self) -> bytes: ...
    def hold_reading(self) -> None: ...
    def go_on_reading(self) -> None: ...
    def turn_over(self) -> None:
        """The answer is complete."""
        ...

    def reset(self) -> None:
        """Break the connection off."""
        ...

    def close(self) -> None:
        """Close it when what was written has left."""
        ...


class Http1Exchange(Exchange):
    """A request and its answer. `receive`, `end_body` and `break_body` are called by the connection."""

    def __init__(self, line: Line, head: RequestHead, accepted_at: Seconds) -> None:
        self._line, self._head, self._accepted_at = line, head, accepted_at
        self._path, _, self._query = _origin_form(head.target).partition("?")
        self._pieces: list[bytes] = []
        self._held = 0
        self._arrival: asyncio.Future[None] | None = None
        self._owed: int | None = None
        self._is_chunked = False
        self._has_body = True
        self.is_received = False
        """Whether the request has come in to its end."""
        self.is_broken = False
        """Whether the rest of the request can never come."""
        self.is_started = False
        self.is_over = False
        """Whether the answer was finished or broken off, after which nobody cancels the handler."""
        self.must_close = not head.keeps_alive
        """Whether the connection ends with this answer."""

    @property
    def method(self) -> str:
        return self._head.method

    @property
    def path(self) -> str:
        return self._path

    @property
    def query(self) -> str:
        return self._query

    @property
    def headers(self) -> Headers:
        return self._head.headers

    @property
    def peer(self) -> str:
        return self._line.peer

    @property
    def accepted_at(self) -> Seconds:
        return self._accepted_at

    # --- the request's body ----------------------------------------------------------------------

    async def body(self) -> AsyncIterator[bytes]:
        self._ask_for_body()
        while True:
            if self._pieces:
                pieces, self._pieces, self._held = self._pieces, [], 0
                self._line.go_on_reading()
                for piece in pieces:
                    yield piece
            elif self.is_received:
                return
            elif self.is_broken or self._line.is_lost:
                raise ClientGone("the request's body broke off")
            else:
                self._arrival = asyncio.get_running_loop().create_future()
                await self._arrival

    def _ask_for_body(self) -> None:
        """Send the interim answer that a client with `expect: 100-continue` waits for."""
        if self.is_received or self.is_started or self._held or not self._head.is_http_1_1:
            return
        if (header(self._head.headers, b"expect") or b"").lower() == b"100-continue":
            self._line.send(answers.CONTINUE)

    def receive(self, piece: bytes) -> None:
        """Part of the body has come."""
        self._pieces.append(piece)
        self._held += len(piece)
        if self._held > BODY_HELD_MAX:
            self._line.hold_reading()
        self._wake()

    def end_body(self) -> None:
        """The request is complete."""
        self.is_received = True
        self._wake()

    def break_body(self) -> None:
        """The rest of the body cannot be read, or will not come."""
        self.is_broken = self.must_close = True
        self._wake()

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    # --- the answer ------------------------------------------------------------------------------

    async def start(self, status: int, headers: Headers) -> None:
        assert not self.is_started, "the head has gone already"
        self._check_line()
        length = header(headers, b"content-length")
        self._has_body = answers.has_body(self._head.method, status)
        self._owed = None if length is None else int(length)
        is_framed = length is not None or not self._has_body
        self._is_chunked = not is_framed and self._head.is_http_1_1
        # A body left unread would be taken for the next request; without framing the connection's end is the answer's.
        self.must_close |= self._line.is_draining or not self.is_received or not (is_framed or self._is_chunked)
        head = answers.head(status, headers, self._own_fields(headers))
        self.is_started = True
        self._line.send(head)

    def _own_fields(self, headers: Headers) -> bytes:
        own = self._line.date()
        if header(headers, b"server") is None:
            own += b"server: kinference\r\n"
        if self._is_chunked:
            own += b"transfer-encoding: chunked\r\n"
        if self.must_close:
            own += b"connection: close\r\n"
        elif not self._head.is_http_1_1:
            own += b"connection: keep-alive\r\n"
        return own

    async def write(self, chunk: bytes) -> None:
        assert self.is_started, "the head goes first"
        if self.is_over:
            raise ClientGone("the answer was broken off")
        self._check_line()
        if not chunk or not self._has_body:
            return
        if self._owed is not None:
            self._owed -= len(chunk)
            assert self._owed >= 0, "more bytes than content-length promised"
        if self._is_chunked:
            for piece in answers.chunk(chunk):
                self._line.send(piece)
        else:
            self._line.send(chunk)
        if self._line.is_congested:
            await self._line.drained()
            self._check_line()

    async def finish(self) -> None:
        assert self.is_started, "the head goes first"
        if self.is_over:
            return
        assert not self._owed or not self._has_body, "fewer bytes than content-length promised"
        self._check_line()
        if self._is_chunked:
            self._line.send(answers.LAST_CHUNK)
        self.is_over = True
        self._line.turn_over()

    def _check_line(self) -> None:
        if self._line.is_lost:
            raise ClientGone("the client closed its connection")

    def abort(self) -> None:
        if not self.is_over:
            self.is_over = True
            self._line.reset()

    async def give_up(self, status: int) -> None:
        """Answer with a bare status where the head has not gone and somebody listens, else break off."""
        if self.is_over or self._line.is_lost:
            return
        if self.is_started:
            self.abort()
            return
        self.must_close = True
        await self.start(status, ((b"content-length", b"0"),))
        await self.finish()

    def break_off(self) -> None:
        """End it for a handler that was cancelled."""
        if self.is_started:
            self.abort()
        else:
            self._line.close()

    def probe(self) -> bytes:
        """Bytes that change nothing for a client that reads; one that has vanished answers them with a reset."""
        if not self.is_started:
            return answers.CONTINUE if self._head.is_http_1_1 else b""
        return b"0" if self._is_chunked else b""  # a leading zero of the next chunk's size


def _origin_form(target: str) -> str:
    """The path and query of a request target, which a client may send as a whole URL."""
    if target.startswith("/") or "://" not in target:
        return target
    _, slash, rest = target.partition("://")[2].partition("/")
    return slash + rest or "/"
