"""The beginning of a connection: whether it speaks HTTP/1.1 or HTTP/2.

Over TLS the handshake has settled it; in clear text the first bytes do, since no request of HTTP/1.1 begins as HTTP/2
connections do.
"""

import asyncio
from typing import cast

from kinference.wire.http1.connection import Connection
from kinference.wire.http2.frames import PREFACE
from kinference.wire.http2.ingress import Http2Ingress
from kinference.wire.site import Site


class Opening(asyncio.Protocol):
    """Hands the transport on. Until then the connection is one of HTTP/1.1 that has said nothing, with its limits."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._first = b""
        self._transport: asyncio.Transport | None = None
        self._connection = Connection(site)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's has no such base class
        if self._site.is_closed:
            self._transport.abort()
            return
        tls = transport.get_extra_info("ssl_object")
        if tls is not None and tls.selected_alpn_protocol() == "h2":
            self._speak_http2(self._transport)
            return
        self._connection.connection_made(transport)
        if tls is not None:
            transport.set_protocol(self._connection)

    def data_received(self, data: bytes) -> None:
        transport = self._transport
        assert transport is not None, "bytes come after the connection"
        self._first += data
        if self._first.startswith(PREFACE) and self._connection.hand_over():
            self._speak_http2(transport).data_received(self._first)
        elif not PREFACE.startswith(self._first):
            transport.set_protocol(self._connection)
            self._connection.data_received(self._first)

    def _speak_http2(self, transport: asyncio.Transport) -> Http2Ingress:
        session = Http2Ingress(self._site)
        transport.set_protocol(session)
        session.connection_made(transport)
        return session

    def eof_received(self) -> bool:
        return self._connection.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.connection_lost(exc)

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()
