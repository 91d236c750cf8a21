"""Streams over connections that are kept, which go to their clients without a task as long as nothing is to be waited for."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from kinference.gateway.options import GatewayOptions
from kinference.ports import UpstreamTimeouts
from kinference.vocabulary import Api
from tests.integration.gateway.conftest import OWN
from tests.integration.gateway.harness import (
    EVENT_HEAD,
    LAST_CHUNK,
    Answer,
    Client,
    MakeGateway,
    Rig,
    gateway_on,
    http_chunk,
    json_answer,
)
from tests.integration.gateway.keeping import SECOND_S, KeepingEngine

CHAT = "/v1/chat/completions"
BODY = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
STREAMING = (
    b'{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}'
)
OK = json_answer(b'{"id":"1","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}')
ROLE = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n'
WORD = 'data: {"choices":[{"index":0,"delta":{"content":"hé😀"}}]}\n\n'.encode()
FINISH = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}\n\n'
DONE = b"data: [DONE]\n\n"
STREAM = ROLE + WORD + WORD + FINISH + USAGE + DONE
PAUSE_S = 0.002
"""Between two writes, so that they come in two reads."""


def writing(*parts: bytes, ends: bool = False) -> Callable[[KeepingEngine, asyncio.StreamWriter], Awaitable[None]]:
    """Writes these, each in a packet of its own; then waits until it may go on, or ends the connection."""

    async def step(engine: KeepingEngine, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(PAUSE_S)
        engine.asked.set()
        if ends:
            writer.close()
        elif not parts or parts[-1] != LAST_CHUNK:
            await engine.go_on.wait()

    return step


async def warmed(rig: Rig, path: str = CHAT, body: bytes = STREAMING) -> Answer:
    assert (await rig.ask(CHAT, BODY)).status == 200
    return await rig.ask(path, body)


@pytest.mark.parametrize("size", [1, 5, 64, 10_000])
async def test_a1_a_stream_in_pieces_reaches_the_client_unchanged(gateway: MakeGateway, size: int) -> None:
    parts = [http_chunk(STREAM[i : i + size]) for i in range(0, len(STREAM), size)]
    async with (
        KeepingEngine(OK, writing(EVENT_HEAD, *parts, LAST_CHUNK)).listening() as engine,
        gateway(engine.port) as rig,
    ):
        answer = await warmed(rig)
        page = await rig.page()
    assert (answer.status, answer.body, answer.is_complete) == (200, STREAM, True)
    assert 'kinference_gateway_tokens_total{kind="prompt"} 14.0' in page
    assert engine.connections == 1


async def test_a_stream_needs_no_task_however_it_comes() -> None:
    whole = EVENT_HEAD + http_chunk(STREAM) + LAST_CHUNK
    paced = writing(
        EVENT_HEAD, http_chunk(ROLE), http_chunk(WORD), http_chunk(WORD + FINISH + USAGE + DONE), LAST_CHUNK
    )
    async with (
        KeepingEngine(OK, whole, paced).listening() as engine,
        gateway_on(OWN, (engine.port,), None, None) as rig,
    ):
        await warmed(rig)
        answer = await rig.ask(CHAT, STREAMING)
        assert rig.straight == 2
    assert (answer.body, answer.is_complete) == (STREAM, True)


async def test_h2_an_engine_that_fails_before_it_says_anything_is_replaced(gateway: MakeGateway) -> None:
    failing = writing(EVENT_HEAD, http_chunk(ROLE), ends=True)
    whole = EVENT_HEAD + http_chunk(STREAM) + LAST_CHUNK
    one, other = KeepingEngine(OK, OK, OK, failing, whole), KeepingEngine()
    other.script = one.script  # whichever is asked
    async with one.listening(), other.listening(), gateway(one.port, other.port) as rig:
        for _ in range(3):
            assert (await rig.ask(CHAT, BODY)).status == 200
        answer = await rig.ask(CHAT, STREAMING)
    assert (answer.status, answer.body) == (200, STREAM)


async def test_a10_a_stream_that_breaks_off_ends_in_an_error_event(gateway: MakeGateway) -> None:
    broken = writing(EVENT_HEAD, http_chunk(WORD), http_chunk(WORD), ends=True)
    async with KeepingEngine(OK, broken).listening() as engine, gateway(engine.port) as rig:
        answer = await warmed(rig)
    assert answer.body.startswith(WORD + WORD)
    assert b"upstream_closed" in answer.body
    assert b"[DONE]" not in answer.body
    assert answer.is_complete


async def test_a_stream_that_stalls_is_told_in_the_clients_dialect(gateway: MakeGateway) -> None:
    options = GatewayOptions(timeouts=UpstreamTimeouts(between_chunks=0.3))
    stalled = writing(EVENT_HEAD, http_chunk(WORD))
    async with KeepingEngine(OK, stalled).listening() as engine, gateway(engine.port, options=options) as rig:
        answer = await warmed(rig)
    assert answer.body.startswith(WORD)
    assert b"upstream_closed" in answer.body


async def test_a19_a_stream_that_falls_silent_is_kept_alive(gateway: MakeGateway) -> None:
    options = GatewayOptions(keep_alive=0.05)
    silent = writing(EVENT_HEAD, http_chunk(WORD))
    async with KeepingEngine(OK, silent).listening() as engine, gateway(engine.port, options=options) as rig:
        await rig.ask(CHAT, BODY)
        async with rig.client() as client:
            await client.send(CHAT, STREAMING)
            await client.until(b": keep-alive\n\n")
            client.writer.transport.abort()
        await asyncio.wait_for(_idle(rig), SECOND_S)


async def _idle(rig: Rig) -> None:
    while not rig.desk.is_idle:  # noqa: ASYNC110 - a handler tells nobody
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("parts", [(), (http_chunk(ROLE),), (http_chunk(ROLE), http_chunk(WORD))])
async def test_g7_a_client_that_vanishes_frees_the_engine(gateway: MakeGateway, parts: tuple[bytes, ...]) -> None:
    async with KeepingEngine(OK, writing(EVENT_HEAD, *parts)).listening() as engine, gateway(engine.port) as rig:
        await rig.ask(CHAT, BODY)
        async with rig.client() as client:
            await client.send(CHAT, STREAMING)
            await engine.asked.wait()
            client.writer.transport.abort()
        await asyncio.wait_for(_idle(rig), SECOND_S)
        engine.go_on.set()
        await asyncio.wait_for(engine.left.wait(), SECOND_S)


async def test_a_client_that_reads_slowly_holds_the_engine_up_and_loses_nothing(gateway: MakeGateway) -> None:
    count, written = 4000, asyncio.Event()
    event = b'data: {"choices":[{"index":0,"delta":{"content":"' + b"x" * 4000 + b'"}}]}\n\n'

    async def flood(_engine: KeepingEngine, writer: asyncio.StreamWriter) -> None:
        writer.write(EVENT_HEAD)
        for _ in range(count):
            writer.write(http_chunk(event))
            await writer.drain()
        written.set()
        writer.write(http_chunk(FINISH + DONE) + LAST_CHUNK)

    async with KeepingEngine(OK, flood).listening() as engine, gateway(engine.port) as rig:
        await rig.ask(CHAT, BODY)
        async with rig.client() as client:
            await client.send(CHAT, STREAMING)
            await client.until(b"\r\n\r\n")
            transport = cast("asyncio.Transport", client.writer.transport)
            transport.pause_reading()
            with pytest.raises(TimeoutError):  # 16 MB are more than all the buffers on the way hold
                await asyncio.wait_for(written.wait(), 1.0)
            transport.resume_reading()
            rest = await client.reader.read()
    assert re.sub(rb"\r\n[0-9a-f]+\r\n", b"", b"\r\n" + rest) == event * count + FINISH + DONE + b"\r\n"


async def test_a_gateway_that_drains_lets_a_stream_come_to_its_end() -> None:
    async def paced(engine: KeepingEngine, writer: asyncio.StreamWriter) -> None:
        writer.write(EVENT_HEAD + http_chunk(WORD))
        engine.asked.set()
        await engine.go_on.wait()
        writer.write(http_chunk(FINISH + DONE) + LAST_CHUNK)

    async with KeepingEngine(OK, paced).listening() as engine, gateway_on(OWN, (engine.port,), None, None) as rig:
        await rig.ask(CHAT, BODY)
        async with rig.client() as client:
            await client.send(CHAT, STREAMING)
            await client.until(WORD)
            assert rig.handlers == 1
            draining = asyncio.ensure_future(rig.drain(SECOND_S))
            await asyncio.sleep(PAUSE_S)
            assert not draining.done()
            engine.go_on.set()
            await client.until(DONE)
            await draining
        assert (rig.handlers, rig.straight) == (0, 1)


async def test_a_gateway_that_closes_breaks_a_stream_off() -> None:
    async with KeepingEngine(OK, writing(EVENT_HEAD, http_chunk(WORD))).listening() as engine:
        async with gateway_on(OWN, (engine.port,), None, None) as rig:
            await rig.ask(CHAT, BODY)
            waiting = rig.client()
            client = await waiting.__aenter__()
            await client.send(CHAT, STREAMING)
            await client.until(WORD)
            assert rig.handlers == 1
        assert rig.handlers == 0
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await client.until(LAST_CHUNK)
        await waiting.__aexit__(None, None, None)


async def test_streams_of_another_api_are_translated_as_ever(gateway: MakeGateway) -> None:
    paced = writing(EVENT_HEAD, http_chunk(ROLE), http_chunk(WORD), http_chunk(FINISH + USAGE + DONE), LAST_CHUNK)
    messages = b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}'
    async with KeepingEngine(OK, paced).listening() as cloud, gateway(provider=(cloud.port, Api.OPENAI_CHAT)) as rig:
        assert (await rig.ask(CHAT, BODY)).status == 200
        answer = await rig.ask("/v1/messages", messages.replace(b'{"model"', b'{"stream":true,"model"'))
    assert answer.status == 200
    assert b"event: message_stop" in answer.body
    assert "hé😀".encode() in answer.body


async def test_many_streams_at_once_over_kept_connections_get_each_its_own(gateway: MakeGateway) -> None:
    def numbered(number: int) -> bytes:
        return b'data: {"choices":[{"index":0,"delta":{"content":"%d."}}]}\n\n' % number

    streams = [b"".join(numbered(n * 100 + k) for k in range(20)) + FINISH + DONE for n in range(8)]
    steps = [
        writing(EVENT_HEAD, *[http_chunk(stream[i : i + 90]) for i in range(0, len(stream), 90)], LAST_CHUNK)
        for stream in streams
    ]
    async with KeepingEngine(OK, *steps).listening() as engine, gateway(engine.port) as rig:
        await rig.ask(CHAT, BODY)
        answers = await asyncio.gather(*[rig.ask(CHAT, STREAMING) for _ in streams])
    assert sorted(answer.body for answer in answers) == sorted(streams)


async def test_one_client_connection_carries_stream_after_stream() -> None:
    whole = EVENT_HEAD + http_chunk(STREAM) + LAST_CHUNK
    async with (
        KeepingEngine(OK, *[whole] * 3).listening() as engine,
        gateway_on(OWN, (engine.port,), None, None) as rig,
        rig.client() as client,
    ):
        await rig.ask(CHAT, BODY)
        head = f"POST {CHAT} HTTP/1.1\r\nhost: gateway\r\ncontent-length: {len(STREAMING)}\r\n\r\n".encode()
        for _ in range(3):
            client.writer.write(head + STREAMING)
            await _one(client)
        assert rig.straight == 3


async def _one(client: Client) -> None:
    assert b" 200 " in await client.until(b"\r\n\r\n")
    assert (await client.until(b"\r\n" + LAST_CHUNK)).endswith(DONE + b"\r\n" + LAST_CHUNK)
