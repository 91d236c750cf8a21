"""Our own HTTP server carrier: listens, and calls the handler for each request, of HTTP/1.1 or HTTP/2."""

import asyncio

from kinference.ids import Seconds
from kinference.ports import Clock
from kinference.wire.burst import Burst, Handshakes
from kinference.wire.connections import LAST_WORDS
from kinference.wire.exchange import Handler
from kinference.wire.http1.deadlines import Deadlines
from kinference.wire.opening import Opening
from kinference.wire.server_options import HttpServerOptions
from kinference.wire.site import Site
from kinference.wire.tls import ServerTls

_LAST_CALL_POLL: Seconds = 0.05

_CANCEL_AGAIN: Seconds = 1.0
"""How long a cancelled handler may take to clean up. One that goes on may have lost its cancellation to something that
ended at the same moment, and is asked again."""


class OwnHttpServer:
    """Listens, and calls the handler for each request."""

    def __init__(
        self,
        handler: Handler,
        clock: Clock,
        options: HttpServerOptions | None = None,
        tls: ServerTls | None = None,
    ) -> None:
        self._tls = tls
        self._handler, self._clock, self._options = handler, clock, options or HttpServerOptions()
        self._listener: asyncio.Server | None = None
        self._burst: Burst | None = None
        self._site: Site | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the bound port, which matters for port 0. Raises OSError when the port is taken."""
        site = self._open()
        burst, backlog = Burst(lambda: Opening(site), self._handshakes(site)), self._options.backlog
        self._burst = burst
        self._listener = await site.loop.create_server(
            burst, host, port, backlog=backlog, start_serving=burst.lets_loop_accept
        )
        burst.attend(self._listener, backlog)
        bound: int = self._listener.sockets[0].getsockname()[1]
        return bound

    async def start_unix(self, path: str) -> None:
        """Listen on a Unix socket instead. Raises OSError."""
        site = self._open()
        burst = self._burst = Burst(lambda: Opening(site))
        self._listener = await site.loop.create_unix_server(burst, path, backlog=self._options.backlog)
        burst.attend(self._listener, self._options.backlog)

    def _handshakes(self, site: Site) -> Handshakes | None:
        options = self._options
        if self._tls is None:
            return None
        tally = site.connections.tally
        return Handshakes(
            self._tls, options.head_timeout, options.connections_max, options.connections_per_peer_max, tally
        )

    def _open(self) -> Site:
        loop = asyncio.get_running_loop()
        self._site = Site(self._handler, self._clock, self._options, loop, Deadlines(loop))
        return self._site

    async def drain(self, timeout: Seconds) -> None:
        """Take nothing new, let what is in flight finish for so long, then close."""
        site = self._stop_listening()
        if site is None:
            return
        for connection in tuple(site.connections):
            connection.end_if_idle()
        end = site.loop.time() + timeout
        while (left := end - site.loop.time()) > 0:  # what was on its way is still taken
            if site.handlers:
                await site.wait_idle(left)
            elif any(connection.may_ask_again for connection in site.connections):
                await asyncio.sleep(min(left, _LAST_CALL_POLL))
            else:
                break
        await self.close()

    async def close(self) -> None:
        """Stop listening, cancel the handlers in flight, close every connection."""
        site = self._stop_listening()
        if site is None:
            return
        while site.handlers:
            for handling in tuple(site.handlers):
                handling.cancel()
            await site.wait_idle(_CANCEL_AGAIN)
        site.is_closed = True
        if self._burst is not None:
            self._burst.give_up()
        for connection in tuple(site.connections):
            connection.close()
        await site.connections.wait_empty(LAST_WORDS)
        for connection in tuple(site.connections):
            connection.abort()
        site.deadlines.close()

    def _stop_listening(self) -> Site | None:
        if self._listener is not None:
            self._listener.close()
        if self._burst is not None:
            self._burst.close()
        if self._site is not None:
            self._site.is_draining = True
        return self._site
