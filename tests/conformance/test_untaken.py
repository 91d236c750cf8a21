"""Bytes that no handler has taken: bounded over all connections, met from outside."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from kinference.config.schema import Config, Limits, Listen
from kinference.config.values import HostPort, Size
from kinference.conformance.client import Client, Issued, open_channel
from kinference.conformance.http2 import RawConnection, framed, raw_connection
from kinference.conformance.target import Target
from kinference.runtime.service import Ports, running

ANY = HostPort("127.0.0.1", 0)
BYTES_MAX = 400_000
HALF = framed(b"\x0a" + bytes(40_000))[:20_000]
"""Of a message: no handler can take it."""
CALM = 11


@pytest.fixture
async def ports() -> AsyncIterator[Ports]:
    limits = Limits(untaken_max_bytes=Size(BYTES_MAX))
    async with running(Config(listen=Listen(ANY, ANY, ANY), limits=limits)) as service:
        yield service.ports


async def is_refused(connection: RawConnection) -> bool:
    """Bring half a message on a stream of its own."""
    stream_id = connection.call("PushBody")
    connection.send(stream_id, HALF, end=False)
    answer = connection.answer(stream_id)
    is_over = await connection.read_until(lambda: answer.is_over, 0.05)
    assert answer.reset in (None, CALM)
    return is_over


async def bring_halves(connection: RawConnection) -> int:
    """Half messages until one is refused. How many were not."""
    for held in range(BYTES_MAX // len(HALF) + 1):
        if await is_refused(connection):
            return held
    raise AssertionError("nothing was refused")


async def test_one_with_half_messages_is_refused_at_half_of_the_bound_and_others_are_served(ports: Ports) -> None:
    target = Target("127.0.0.1", ports.picker)
    async with AsyncExitStack() as stack:
        hostile = await stack.enter_async_context(raw_connection(target))
        assert await bring_halves(hostile) == BYTES_MAX // 2 // len(HALF)
        channel = await stack.enter_async_context(open_channel(target))
        _, received = await Client(channel, target, Issued()).push(b"x" * 90_000)
        assert received == 90_000
    async with raw_connection(target) as again:
        async with asyncio.timeout(10):
            while await bring_halves(again) < BYTES_MAX // 2 // len(HALF):
                pass  # until the server has noticed that the first has gone


async def test_while_room_is_short_at_the_picker_a_large_request_at_the_gateway_is_answered(ports: Ports) -> None:
    async with raw_connection(Target("127.0.0.1", ports.picker)) as hostile:
        await bring_halves(hostile)
        reader, writer = await asyncio.open_connection("127.0.0.1", ports.gateway)
        body = b'{"model": "none", "messages": [{"role": "user", "content": "' + b"x" * 1_000_000 + b'"}]}'
        writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        assert (await reader.readline()).split()[1] == b"404"
        writer.close()
