"""Our own HTTP/1.1 client carrier: `ports.Upstream` over a pool of keep-alive connections."""

import asyncio
import socket
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from kinference.errors import NoConnectionLeft, UpstreamUnreachable
from kinference.ids import Seconds
from kinference.ports import UpstreamAnswer, UpstreamRequest
from kinference.wire.connections import EXHAUSTED
from kinference.wire.http1.asking import Asking, Http1Answer
from kinference.wire.http1.asks import DEFAULT_PORTS, pieces_of
from kinference.wire.http1.deadlines import Deadlines
from kinference.wire.http1.link import Link
from kinference.wire.http1.pool import Pool
from kinference.wire.names import Names
from kinference.wire.patience import Patience
from kinference.wire.trust import Trust, why
from kinference.wire.turn import Turn


class Http1Upstream:
    """HTTP connections to destinations. Made inside a running event loop; closed by leaving its context."""

    def __init__(self, trust: Trust | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._names = Names(self._loop)
        self._deadlines, self._turn = Deadlines(self._loop), Turn()
        self._pool = pool = Pool()
        self.ask = Asking(pool).ask
        self._trust = trust or Trust()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        self._pool.close()
        self._deadlines.close()
        self._names.close()

    async def send(self, request: UpstreamRequest) -> UpstreamAnswer:
        """Send and wait for the head of the answer."""
        pieces, pool = pieces_of(request), self._pool
        kept = pool.take(request.origin)
        while True:
            if (link := kept) is None:
                pool.use(link := await self._connect(request))
            try:
                link.ask(pieces, to_head=request.method == "HEAD")
                await link.more(request.timeouts.first_byte)
                link.check()
            except UpstreamUnreachable:
                pool.drop(link)
                if kept is None:
                    raise
                kept = None  # closed at the far end meanwhile; nothing of it was served
            except BaseException:
                pool.drop(link)
                raise
            else:
                return Http1Answer(pool, link, request.timeouts.between_chunks)

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
