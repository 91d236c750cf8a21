"""One request and its answer as a handler sees them, on a stream of our own HTTP/2 connection."""

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol

from kinference.errors import ClientGone
from kinference.ids import Seconds
from kinference.ports import Headers
from kinference.wire.exchange import header
from kinference.wire.http1.answers import has_body
from kinference.wire.http2.headers import literal
from kinference.wire.http2.http_head import HttpHead
from kinference.wire.site import OwnExchange

CONTINUE = literal(b":status", b"100")
SERVER = literal(b"server", b"kinference")


class Line(Protocol):
    """What an exchange needs of its connection."""

    @property
    def peer(self) -> str: ...
    def date(self) -> bytes:
        """The `date` field, as a header block."""
        ...

    def taken(self, stream_id: int, size: int) -> None:
        """The handler took so many bytes: the client may send as many again."""
        ...

    def send_head(self, stream_id: int, block: bytes) -> None: ...
    def send_body(self, stream_id: int, chunk: bytes) -> bool:
        """Send, at the end of the event loop's round at the latest. False when some has to wait: `go_on` follows."""
        ...

    def finish(self, stream_id: int) -> None:
        """The answer is complete."""
        ...

    def reset(self, stream_id: int) -> None:
        """The answer never will be."""
        ...


class Http2Exchange(OwnExchange):
    """A request and its answer. `receive`, `end_body`, `go_on` and `lose` are called by the connection."""

    def __init__(self, line: Line, stream_id: int, head: HttpHead, accepted_at: Seconds) -> None:
        self._line, self._stream_id, self._head, self._accepted_at = line, stream_id, head, accepted_at
        self._pieces: list[bytes] = []
        self._arrival: asyncio.Future[None] | None = None
        self._drain: asyncio.Future[None] | None = None
        self._is_received = self._is_lost = False
        self._owed: int | None = None
        self._has_body = True
        self.is_started = False
        self.is_over = False

    @property
    def method(self) -> str:
        return self._head.method

    @property
    def path(self) -> str:
        return self._head.path

    @property
    def query(self) -> str:
        return self._head.query

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
                pieces, self._pieces = self._pieces, []
                self._line.taken(self._stream_id, sum(map(len, pieces)))
                for piece in pieces:
                    yield piece
            elif self._is_received:
                return
            elif self._is_lost or self.is_over:
                raise ClientGone("the request's body broke off")
            else:
                self._arrival = asyncio.get_running_loop().create_future()
                await self._arrival

    def _ask_for_body(self) -> None:
        """Send the interim answer that a client with `expect: 100-continue` waits for."""
        if self._is_received or self.is_started or self._pieces or self._is_lost:
            return
        if (header(self._head.headers, b"expect") or b"").lower() == b"100-continue":
            self._line.send_head(self._stream_id, CONTINUE)

    def receive(self, piece: bytes) -> None:
        """Part of the body has come."""
        self._pieces.append(piece)
        _wake(self._arrival)

    def end_body(self) -> None:
        """The request is complete."""
        self._is_received = True
        _wake(self._arrival)

    def go_on(self) -> None:
        """The client has taken what was written."""
        _wake(self._drain)

    def lose(self) -> None:
        """The stream was reset, or the connection lost."""
        self._is_lost = True
        _wake(self._arrival)
        _wake(self._drain)

    # --- the answer ------------------------------------------------------------------------------

    async def start(self, status: int, headers: Headers) -> None:
        assert not self.is_started, "the head has gone already"
        self._check_stream()
        length = header(headers, b"content-length")
        self._has_body = has_body(self._head.method, status)
        self._owed = None if length is None else int(length)
        block = answer_head(status, headers) + self._line.date()
        if header(headers, b"server") is None:
            block += SERVER
        self.is_started = True
        self._line.send_head(self._stream_id, block)

    async def write(self, chunk: bytes) -> None:
        assert self.is_started, "the head goes first"
        if self.is_over:
            raise ClientGone("the answer was broken off")
        self._check_stream()
        if not chunk or not self._has_body:
            return
        if self._owed is not None:
            self._owed -= len(chunk)
            assert self._owed >= 0, "more bytes than content-length promised"
        if not self._line.send_body(self._stream_id, chunk):
            self._drain = asyncio.get_running_loop().create_future()
            await self._drain
            self._check_stream()

    async def finish(self) -> None:
        assert self.is_started, "the head goes first"
        if self.is_over:
            return
        assert not self._owed or not self._has_body, "fewer bytes than content-length promised"
        self._check_stream()
        self.is_over = True
        self._line.finish(self._stream_id)

    def _check_stream(self) -> None:
        if self._is_lost:
            raise ClientGone("the client reset the request, or closed its connection")

    def abort(self) -> None:
        if not self.is_over:
            self.is_over = True
            self._line.reset(self._stream_id)

    async def give_up(self, status: int) -> None:
        if self.is_over or self._is_lost:
            return
        if self.is_started:
            self.abort()
            return
        await self.start(status, ((b"content-length", b"0"),))
        await self.finish()

    def break_off(self) -> None:
        self.abort()


def _wake(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)


def answer_head(status: int, headers: Headers) -> bytes:
    """The header block of an answer. Raises ValueError for a line break inside a field."""
    for name, value in headers:
        if b"\n" in value or b"\r" in value or b"\n" in name or b"\r" in name:
            raise ValueError("a header field with a line break inside")
    return b"".join([literal(b":status", b"%d" % status), *[literal(name, value) for name, value in headers]])
