"""Our own HTTP/1.1 client carrier: `ports.Upstream` over a pool of keep-alive connections."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from kinference.errors import NoConnectionLeft, UpstreamCut, UpstreamTimeout, UpstreamUnreachable
from kinference.ids import Seconds
from kinference.ports import Asked, Follower, Headers, Sink, Told, Upstream, UpstreamAnswer, UpstreamRequest
from kinference.wire.connections import EXHAUSTED
from kinference.wire.http1.asks import DEFAULT_PORTS, pieces_of
from kinference.wire.http1.deadlines import Deadlines
from kinference.wire.http1.link import Link
from kinference.wire.http1.pool import Pool
from kinference.wire.names import Names
from kinference.wire.over import OVER
from kinference.wire.patience import Patience
from kinference.wire.trust import Trust, why
from kinference.wire.turn import Turn


class Http1Upstream(Upstream):
    """HTTP connections to destinations. Made inside a running event loop; closed by leaving its context."""

    def __init__(self, trust: Trust | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._names = Names(self._loop)
        self._deadlines, self._turn = Deadlines(self._loop), Turn()
        self._pool = Pool()
        self._trust = trust or Trust()
        self._in_use: set[Link] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        self._pool.close()
        for link in tuple(self._in_use):
            link.close()
        self._deadlines.close()
        self._names.close()

    def ask(self, request: UpstreamRequest, told: Told) -> Asked | None:
        pieces = pieces_of(request)
        link = self._pool.take(request.origin)
        if link is None:
            return None
        self._in_use.add(link)
        asked = _Http1Asked(self, link, request, told)
        try:
            link.ask(pieces, to_head=request.method == "HEAD")
        except BaseException:
            self.drop(link)
            raise
        link.tell(asked.hear, request.timeouts.first_byte)
        return asked

    async def send(self, request: UpstreamRequest) -> UpstreamAnswer:
        pieces = pieces_of(request)
        kept = self._pool.take(request.origin)
        while True:
            link = kept or await self._connect(request)
            self._in_use.add(link)
            try:
                link.ask(pieces, to_head=request.method == "HEAD")
                await link.more(request.timeouts.first_byte)
                link.check()
            except UpstreamUnreachable:
                self.drop(link)
                if kept is None:
                    raise
                kept = None  # closed at the far end meanwhile; nothing of it was served
            except BaseException:
                self.drop(link)
                raise
            else:
                return _Http1Answer(self, link, request)

    def drop(self, link: Link) -> None:
        """An answer is not waited for any more."""
        self._in_use.discard(link)
        link.close()

    def give_back(self, link: Link) -> None:
        """An answer is done with."""
        self._in_use.discard(link)
        self._pool.give(link)

    async def _connect(self, request: UpstreamRequest) -> Link:
        origin, patience = request.origin, request.timeouts.connect
        try:
            async with Patience(patience):
                return await self._open(origin, patience)
        except TimeoutError:
            raise UpstreamUnreachable(f"{origin} did not accept a connection in {patience:g} s") from None
        except socket.gaierror:
            raise UpstreamUnreachable(f"{origin} has no known address") from None
        except OSError as error:
            if error.errno in EXHAUSTED:
                raise NoConnectionLeft(f"no connection to {origin} can be opened: {why(error)}") from None
            raise UpstreamUnreachable(f"{origin} is unreachable: {why(error)}") from None
        except ValueError:
            raise UpstreamUnreachable(f"{origin} is not a usable address") from None

    async def _open(self, origin: str, patience: Seconds) -> Link:
        url = urlsplit(origin)
        if url.scheme == "unix":
            _, link = await self._loop.create_unix_connection(partial(self._link, origin), url.path)
            return link
        if url.scheme not in DEFAULT_PORTS or not url.hostname:
            raise ValueError(origin)
        site = _Site(origin, url.hostname, url.port or DEFAULT_PORTS[url.scheme], url.scheme == "https")
        addresses = await self._names.addresses(site.host)
        for address in addresses[:-1]:
            with suppress(OSError):  # that of a time-out is one
                async with Patience(patience / len(addresses)):  # one that is silent must not take all the time
                    return await self._open_at(site, address)
        return await self._open_at(site, addresses[-1])

    def _link(self, origin: str) -> Link:
        return Link(origin, self._deadlines, self._turn)

    async def _open_at(self, site: "_Site", address: str) -> Link:
        tls = self._trust.context if site.is_tls else None
        _, link = await self._loop.create_connection(
            partial(self._link, site.origin),
            address,
            site.port,
            ssl=tls,
            server_hostname=site.host if site.is_tls else None,
        )
        self._names.reached(site.host, address)
        return link


@dataclass(frozen=True, slots=True)
class _Site:
    """Where a connection is to be made."""

    origin: str
    host: str
    port: int
    is_tls: bool


class _Http1Asked:
    """A request on its way, without a task."""

    def __init__(self, upstream: Http1Upstream, link: Link, request: UpstreamRequest, told: Told) -> None:
        self._upstream, self._link, self._request, self._told = upstream, link, request, told

    def hear(self) -> None:
        """Its head is there, or it failed."""
        link = self._link
        try:
            link.check()
        except UpstreamUnreachable:  # closed at the far end meanwhile; nothing of it was served
            self._upstream.drop(link)
            self._told(None)
        except (UpstreamCut, UpstreamTimeout) as error:
            self._upstream.drop(link)
            self._told(error)
        else:
            self._told(_Http1Answer(self._upstream, link, self._request))

    def drop(self) -> None:
        self._link.forget()
        self._upstream.drop(self._link)


class _Http1Answer(UpstreamAnswer):
    status = 0
    headers: Headers = ()

    def __init__(self, upstream: Http1Upstream, link: Link, request: UpstreamRequest) -> None:
        self._upstream = upstream
        self._link: Link | None = link
        self._follower: Follower | None = None
        self._patience = request.timeouts.between_chunks
        self.status, self.headers = link.reply.status, link.reply.headers

    @property
    def is_ready(self) -> bool:
        return self._link is None or self._link.reply.is_complete or bool(self._link.reply.pieces)

    def arrived(self) -> bytes | None:
        link = self._link
        return link.take() if link is not None and link.reply.is_complete else None

    def follow(self, follower: Follower) -> bool:
        link = self._link
        if link is None:
            return False
        self._follower = follower
        link.follow(follower.take, self._hear, self._patience)
        return True

    def _hear(self) -> None:
        """It has come to its end, whichever."""
        link, follower = self._link, self._follower
        assert link is not None, "a closed one hears nothing"
        assert follower is not None, "somebody follows it"
        if (rest := link.take()) and not follower.take(rest):
            return
        self._follower = None
        follower.ended(is_cut=link.has_failed)

    def leave(self) -> None:
        self._follower = None
        if self._link is not None:
            self._link.stop_pouring()

    def chunks(self) -> AsyncIterator[bytes]:
        return self  # no generator: the event loop would enter each into a book of its own

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        while (link := self._link) is not None:
            if chunk := link.take():
                return chunk
            if link.reply.is_complete:
                break
            await link.more(self._patience)
            link.check()
        raise StopAsyncIteration

    async def pour(self, sink: Sink) -> None:
        while (link := self._link) is not None:
            if chunk := link.take():
                if sink.take(chunk):
                    continue
            elif link.reply.is_complete:
                break
            else:
                try:
                    await link.pour(sink.take, self._patience)
                finally:
                    link.stop_pouring()
                link.check()
            await sink.ready()

    def close(self) -> Awaitable[None]:
        link, self._link = self._link, None
        if link is not None:
            self._upstream.give_back(link)
        return OVER
