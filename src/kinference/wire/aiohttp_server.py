"""The HTTP server carrier on aiohttp: speaks `wire.exchange` upward, and nothing of the library gets past it."""

import asyncio
import logging
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from socket import SO_LINGER, SOL_SOCKET
from typing import cast

from aiohttp import web
from aiohttp.http import HttpVersion11, StreamWriter
from aiohttp.http_exceptions import LineTooLong
from multidict import CIMultiDict

from kinference.errors import ClientGone
from kinference.ids import Seconds
from kinference.ports import Clock, Headers
from kinference.wire.exchange import Exchange, Handler
from kinference.wire.fields import header
from kinference.wire.server_options import HttpServerOptions

_log = logging.getLogger(__name__)

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_CANCELLED_GRACE: Seconds = 1.0
_UNSENT_MAX = 64 * 1024
"""Bytes that may wait for a client before its answer does."""


class AiohttpServer:
    """Listens, and calls the handler for each request."""

    def __init__(self, handler: Handler, clock: Clock, options: HttpServerOptions | None = None) -> None:
        self._handler, self._clock = handler, clock
        self._options = options or HttpServerOptions()
        self._listener: asyncio.Server | None = None
        self._library: web.Server | None = None
        self._in_flight: set[asyncio.Task[None]] = set()
        self._draining = False
        self._closed = False

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the bound port, which matters for port 0. Raises OSError when the port is taken."""
        loop = asyncio.get_running_loop()
        library = web.Server(self._serve, handler_cancellation=True)
        listener = await loop.create_server(
            lambda: _Connection(library, loop, self._clock, self._options, self._closed_now),
            host,
            port,
            backlog=self._options.backlog,
        )
        self._library, self._listener = library, listener
        bound: int = listener.sockets[0].getsockname()[1]
        return bound

    async def drain(self, timeout: Seconds) -> None:
        """Take nothing new, let what is in flight finish for so long, then close."""
        self._draining = True
        if self._listener is not None:
            self._listener.close()
        self._close_idle()
        if self._in_flight:
            await asyncio.wait(self._in_flight, timeout=timeout)
        await self.close()

    async def close(self) -> None:
        """Stop listening, cancel the handlers in flight, close every connection."""
        self._draining = True
        if self._listener is not None:
            self._listener.close()
        while self._in_flight:
            for work in self._in_flight:
                work.cancel()
            await asyncio.wait(self._in_flight, timeout=_CANCELLED_GRACE)
        self._closed = True
        if self._library is not None:
            self._library.pre_shutdown()
            await self._library.shutdown(_CANCELLED_GRACE)

    def _close_idle(self) -> None:
        for connection in self._library.connections if self._library else ():
            assert isinstance(connection, _Connection)
            if connection.first_byte_at is None:
                connection.force_close()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        """Run the handler apart from the library's task, which is cancelled even after a complete answer."""
        connection = request.protocol
        assert isinstance(connection, _Connection)
        exchange = _AiohttpExchange(request, connection.take_first_byte_at(), self._draining_now)
        try:
            async with asyncio.TaskGroup() as group:
                work = group.create_task(self._handle(exchange))
                self._in_flight.add(work)
                work.add_done_callback(self._in_flight.discard)
                await _wait_shielded(work, exchange)
        finally:
            connection.first_byte_at = None
        return exchange.response

    def _draining_now(self) -> bool:
        return self._draining

    def _closed_now(self) -> bool:
        return self._closed

    async def _handle(self, exchange: "_AiohttpExchange") -> None:
        try:
            await self._handler(exchange)
            if not exchange.is_over:
                _log.error("handler left its answer unfinished: %s %s", exchange.method, exchange.path)
                await _give_up(exchange, 500)
        except ClientGone:
            await _give_up(exchange, 400)
        except Exception:  # noqa: BLE001 - the root of the request's task: one bad request must not take the server down
            _log.exception("handler failed: %s %s", exchange.method, exchange.path)
            await _give_up(exchange, 500)


async def _wait_shielded(work: "asyncio.Task[None]", exchange: "_AiohttpExchange") -> None:
    """Wait for a handler; when its client vanishes, cancel it only if the answer is not complete."""
    try:
        await asyncio.shield(work)
    except asyncio.CancelledError:
        if not exchange.is_over:
            work.cancel()
        await asyncio.wait((work,))
        raise


async def _give_up(exchange: "_AiohttpExchange", status: int) -> None:
    """Answer with a bare status where the head has not gone and somebody listens, else break off."""
    if exchange.is_over:
        return
    if exchange.is_started or not exchange.is_connected:
        exchange.abort()
        return
    try:
        await exchange.start(status, ((b"content-length", b"0"), (b"connection", b"close")))
        await exchange.finish()
    except ClientGone:
        exchange.abort()


class _Connection(web.RequestHandler):
    """aiohttp's connection, which also notes when a request's first byte came, and stays quiet about bad ones."""

    __slots__ = ("_clock", "_is_closed", "first_byte_at")

    def __init__(
        self,
        library: web.Server,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        options: HttpServerOptions,
        is_closed: Callable[[], bool],
    ) -> None:
        super().__init__(
            library,
            loop=loop,
            keepalive_timeout=options.keepalive,
            access_log=None,  # type: ignore[arg-type] # the library takes None for "no access log", its types do not say so
            max_line_size=options.field_bytes_max,
            max_field_size=options.field_bytes_max,
            max_headers=options.fields_max,
            auto_decompress=False,
        )
        self._clock, self._is_closed = clock, is_closed
        self.first_byte_at: Seconds | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self._is_closed():  # the system had accepted it before the listener was closed
            self.force_close()

    def data_received(self, data: bytes) -> None:
        if self.first_byte_at is None:
            self.first_byte_at = self._clock.now()
        super().data_received(data)

    def take_first_byte_at(self) -> Seconds:
        """When the request now starting began to arrive; a pipelined one counts from when its turn came."""
        if self.first_byte_at is None:
            self.first_byte_at = self._clock.now()
        return self.first_byte_at

    def handle_error(
        self,
        request: web.BaseRequest,  # noqa: ARG002 - the library's signature
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - it may quote the request
    ) -> web.StreamResponse:
        """Answer what could not be parsed."""
        status, text = (
            (431, "request head too large") if isinstance(exc, LineTooLong) else (status, "malformed request")
        )
        _log.info("refused with %d: %s", status, text)
        response = web.Response(status=status, text=text, headers={"server": "kinference"})
        response.force_close()
        return response


class _AiohttpExchange(Exchange):
    def __init__(self, request: web.BaseRequest, accepted_at: Seconds, is_draining: Callable[[], bool]) -> None:
        self._request = request
        self._accepted_at = accepted_at
        self._is_draining = is_draining
        self._path, _, self._query = _origin_form(request.raw_path).partition("?")
        self._headers: Headers = tuple((name.lower(), value) for name, value in request.raw_headers)
        self._owed: int | None = None
        self.response = web.StreamResponse()
        self.is_started = False
        self.is_over = False
        """Whether the answer was finished or broken off, after which nobody cancels the handler."""

    @property
    def method(self) -> str:
        return self._request.method

    @property
    def path(self) -> str:
        return self._path

    @property
    def query(self) -> str:
        return self._query

    @property
    def headers(self) -> Headers:
        return self._headers

    @property
    def peer(self) -> str:
        return self._request.remote or ""

    @property
    def peer_names(self) -> Sequence[str]:
        return ()  # the libraries' servers have no TLS

    @property
    def accepted_at(self) -> Seconds:
        return self._accepted_at

    @property
    def is_connected(self) -> bool:
        return self._request.transport is not None

    def arrived(self) -> bytes | None:
        return None  # the library does not tell

    async def body(self) -> AsyncIterator[bytes]:
        try:
            await self._ask_for_body()
            async for chunk in self._request.content.iter_any():
                yield chunk
        except (OSError, web.RequestPayloadError):
            raise ClientGone("the request's body broke off") from None

    async def _ask_for_body(self) -> None:
        """Send the interim answer that a client with `expect: 100-continue` waits for."""
        expects = (header(self._headers, b"expect") or b"").lower() == b"100-continue"
        if not expects or self.is_started or self._request.version < HttpVersion11 or self._request.content.is_eof():
            return
        await self._request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._request.writer.output_size = 0  # the library takes any output for a started answer

    async def start(self, status: int, headers: Headers) -> None:
        assert not self.is_started, "the head has gone already"
        self.is_started = True
        fields = CIMultiDict([("server", "kinference")] if header(headers, b"server") is None else [])
        for name, value in headers:
            fields.add(name.decode("latin-1"), value.decode("utf-8", "replace"))
        self.response = response = web.StreamResponse(status=status, headers=fields)
        length = header(headers, b"content-length")
        self._owed = None if length is None else int(length)
        if self._must_close(length is not None):
            response.force_close()
        try:
            await response.prepare(self._request)
        except ConnectionError:
            raise _gone() from None

    def _must_close(self, has_length: bool) -> bool:
        """Whether the connection ends with this answer: draining, a body left unread, or no other framing."""
        unframed = not has_length and self._request.version < HttpVersion11
        return unframed or self._is_draining() or not self._request.content.is_eof()

    def send(self, chunk: bytes) -> bool:
        assert self.is_started, "the head goes first"
        if self.is_over:
            raise ClientGone("the answer was broken off")
        if not chunk or not self._has_body():
            return True
        if self._owed is not None:
            self._owed -= len(chunk)
            assert self._owed >= 0, "more bytes than content-length promised"
        writing = cast("StreamWriter", self._request.writer).write(chunk, drain=False)  # which waits for nothing
        try:
            with suppress(StopIteration):
                writing.send(None)
        except ConnectionError:
            raise _gone() from None
        transport = self._request.transport
        return transport is None or transport.get_write_buffer_size() <= _UNSENT_MAX

    async def drained(self) -> None:
        try:
            await self._request.writer.drain()
        except ConnectionError:
            raise _gone() from None

    async def write(self, chunk: bytes) -> None:
        if not self.send(chunk):
            await self.drained()

    def _has_body(self) -> bool:
        return self.method != "HEAD" and self.response.status not in (204, 304)

    async def finish(self) -> None:
        assert self.is_started, "the head goes first"
        if self.is_over:
            return
        assert not self._owed or not self._has_body(), "fewer bytes than content-length promised"
        try:
            await self.response.write_eof()
        except ConnectionError:
            raise _gone() from None
        self.is_over = True

    def abort(self) -> None:
        if self.is_over:
            return
        self.is_over = True
        transport = self._request.transport
        if transport is None:
            return
        connection = transport.get_extra_info("socket")
        if connection is not None:
            # Where the end of the connection is the end of the answer, only a reset tells the two apart.
            connection.setsockopt(SOL_SOCKET, SO_LINGER, _RESET_ON_CLOSE)
        transport.abort()


def _gone() -> ClientGone:
    return ClientGone("the client closed its connection")


def _origin_form(target: str) -> str:
    """The path and query of a request target, which a client may send as a whole URL."""
    if target.startswith("/") or "://" not in target:
        return target
    _, slash, rest = target.partition("://")[2].partition("/")
    return slash + rest or "/"
