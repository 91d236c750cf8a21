"""What many requests leave behind, and what they keep from others."""

import asyncio
import resource
from contextlib import AsyncExitStack, suppress

from tests.integration.gateway.conftest import OWN
from tests.integration.gateway.harness import (
    EVENT_HEAD,
    LAST_CHUNK,
    MakeGateway,
    RawUpstream,
    Received,
    gateway_on,
    http_chunk,
    json_answer,
)

CHAT = "/v1/chat/completions"
STREAMING = b'{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true}'
EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n'
END = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
SOCKETS_OF_A_STREAM = 4
STREAMS = 1_000
ACCEPTED = 50
"""Connections at once that every listener has room for."""


async def test_h13_a_thousand_open_streams_keep_nobody_from_an_answer_about_health() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # each of them has both its ends in this process
    streams = min(STREAMS, hard // (2 * SOCKETS_OF_A_STREAM)) if hard > 0 else STREAMS
    over = asyncio.Event()

    async def script(_request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(EVENT_HEAD + http_chunk(EVENT))
        await over.wait()
        writer.write(http_chunk(END) + LAST_CHUNK)

    async with (
        RawUpstream(script).listening() as engine,
        gateway_on(OWN, (engine.port,), None, None) as rig,
        AsyncExitStack() as stack,
    ):
        stack.callback(over.set)  # also where something fails, or the engine would wait for ever
        clients = [await stack.enter_async_context(rig.client()) for _ in range(streams)]
        for together in (clients[at : at + ACCEPTED] for at in range(0, streams, ACCEPTED)):
            for client in together:
                await client.send(CHAT, STREAMING)
            for client in together:
                await client.until(EVENT)
        healthy = await rig.ask("/health", b"", method="GET")
        assert (healthy.status, rig.handlers) == (200, streams)
        over.set()
        rest = [await client.reader.read() for client in clients]
    assert all(b"[DONE]" in each for each in rest)


async def test_h16_a_stream_that_begins_with_an_error_gives_its_connection_back(gateway: MakeGateway) -> None:
    limited = json_answer(b'{"error":{"message":"slow down"}}', "429 Too Many Requests")
    connections: list[asyncio.Task[None]] = []

    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                await reader.readexactly(int(Received(head, b"").field("content-length")[0]))
                writer.write(limited)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(asyncio.create_task(answered(reader, writer)))

    async with await asyncio.start_server(accepted, "127.0.0.1", 0) as engine:
        async with gateway(engine.sockets[0].getsockname()[1]) as rig:
            statuses = {(await rig.ask(CHAT, STREAMING)).status for _ in range(500)}
        await asyncio.gather(*connections)
    assert (statuses, len(connections)) == ({429}, 1)
