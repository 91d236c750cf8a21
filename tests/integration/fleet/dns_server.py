"""A DNS server over UDP and TCP, as small as can be: it answers what its zone holds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset

UDP_BYTES_MAX = 1232


@dataclass
class DnsServer:
    """Records by name and type; a name without any does not exist."""

    zone: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    rcode: dns.rcode.Rcode = dns.rcode.NOERROR
    """Anything else is the answer to everything."""
    is_silent: bool = False
    over_tcp: int = 0
    port: int = 0

    def answer(self, wire: bytes, bytes_max: int) -> bytes:
        question = dns.message.from_wire(wire)
        response = dns.message.make_response(question)
        (asked,) = question.question
        name, kind = asked.name.to_text(), dns.rdatatype.to_text(asked.rdtype)
        if self.rcode != dns.rcode.NOERROR:
            response.set_rcode(self.rcode)
        elif records := self.zone.get((name, kind)):
            response.answer.append(dns.rrset.from_text_list(name, 5, "IN", kind, records))
        elif not any(known == name for known, _ in self.zone):
            response.set_rcode(dns.rcode.NXDOMAIN)
        made = response.to_wire()
        if len(made) > bytes_max:
            response.answer.clear()
            response.flags |= dns.flags.TC
            made = response.to_wire()
        return made

    async def over_stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        size = int.from_bytes(await reader.readexactly(2), "big")
        made = self.answer(await reader.readexactly(size), 65535)
        self.over_tcp += 1
        writer.write(len(made).to_bytes(2, "big") + made)
        await writer.drain()
        writer.close()


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, server: DnsServer) -> None:
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)  # the library's own is no subclass of it

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        if not self._server.is_silent:
            self._transport.sendto(self._server.answer(data, UDP_BYTES_MAX), addr)


@asynccontextmanager
async def dns_server(server: DnsServer) -> AsyncIterator[DnsServer]:
    stream = await asyncio.start_server(server.over_stream, "127.0.0.1", 0)
    server.port = stream.sockets[0].getsockname()[1]
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: _Datagrams(server), ("127.0.0.1", server.port))
    try:
        yield server
    finally:
        transport.close()
        stream.close()
        await stream.wait_closed()
