"""Requests to engines that keep their connections, which need nothing but their answer to be waited for."""

import asyncio

import pytest

from tests.integration.gateway.conftest import OWN
from tests.integration.gateway.harness import (
    EVENT_HEAD,
    LAST_CHUNK,
    Answer,
    MakeGateway,
    Rig,
    gateway_on,
    http_chunk,
    json_answer,
)
from tests.integration.gateway.keeping import SECOND_S, KeepingEngine

CHAT = "/v1/chat/completions"
BODY = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
STREAMING = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'
ANSWER = b'{"id":"1","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}'
EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n'
DONE = b"data: [DONE]\n\n"
OK = json_answer(ANSWER)


async def thinking(engine: KeepingEngine, writer: asyncio.StreamWriter) -> None:
    engine.asked.set()
    await engine.go_on.wait()
    writer.write(OK)


async def in_two(engine: KeepingEngine, writer: asyncio.StreamWriter) -> None:
    half = len(OK) - 9
    writer.write(OK[:half])
    await writer.drain()
    engine.asked.set()
    await engine.go_on.wait()
    writer.write(OK[half:])


async def asked_again(rig: Rig, body: bytes = BODY) -> Answer:
    """The answer to a second request, for which a connection is kept."""
    first = await rig.ask(CHAT, BODY)
    assert (first.status, first.body) == (200, ANSWER)
    return await rig.ask(CHAT, body)


async def test_a_connection_that_is_kept_is_asked_again(gateway: MakeGateway) -> None:
    async with KeepingEngine(OK, OK).listening() as engine, gateway(engine.port) as rig:
        answer = await asked_again(rig)
        page = await rig.page()
    assert (answer.status, answer.body, answer.is_complete) == (200, ANSWER, True)
    assert answer.field("x-kinference-endpoint") == [f"127.0.0.1:{engine.port}"]
    assert engine.connections == 1
    assert 'kinference_gateway_tokens_total{kind="prompt"} 14.0' in page


async def test_only_the_first_request_needs_a_task() -> None:
    async with KeepingEngine(OK, OK, OK).listening() as engine, gateway_on(OWN, (engine.port,), None, None) as rig:
        await asked_again(rig)
        await rig.ask(CHAT, BODY)
        assert rig.straight == 2


async def test_requests_that_are_sent_ahead_are_answered_in_their_order(gateway: MakeGateway) -> None:
    answers = [json_answer(b'{"number":%d}' % number) for number in range(4)]
    async with KeepingEngine(OK, *answers).listening() as engine, gateway(engine.port) as rig, rig.client() as client:
        await rig.ask(CHAT, BODY)
        head = f"POST {CHAT} HTTP/1.1\r\nhost: gateway\r\ncontent-length: {len(BODY)}\r\n\r\n"
        client.writer.write((head.encode() + BODY) * 3)
        await client.send(CHAT, BODY)
        raw = await client.reader.read()
    assert [raw.find(b'{"number":%d}' % number) > 0 for number in range(4)] == [True] * 4
    assert sorted(raw.find(b'{"number":%d}' % number) for number in range(4)) == [
        raw.find(b'{"number":%d}' % number) for number in range(4)
    ]


async def test_an_answer_that_comes_in_two_is_whole(gateway: MakeGateway) -> None:
    async with KeepingEngine(OK, in_two).listening() as engine, gateway(engine.port) as rig:
        asking = asyncio.ensure_future(asked_again(rig))
        await engine.asked.wait()
        engine.go_on.set()
        answer = await asking
    assert (answer.status, answer.body, answer.is_complete) == (200, ANSWER, True)


async def test_a_stream_comes_over_a_connection_that_was_kept(gateway: MakeGateway) -> None:
    stream = EVENT_HEAD + http_chunk(EVENT) + http_chunk(DONE) + LAST_CHUNK
    async with KeepingEngine(OK, stream).listening() as engine, gateway(engine.port) as rig:
        answer = await asked_again(rig, STREAMING)
    assert (answer.status, answer.body, answer.is_complete) == (200, EVENT + DONE, True)


@pytest.mark.parametrize("times", [1, 2])
async def test_an_engine_that_has_closed_what_was_kept_is_asked_anew(gateway: MakeGateway, times: int) -> None:
    async with KeepingEngine(OK, *[None] * times, OK).listening() as engine, gateway(engine.port) as rig:
        answer = await asked_again(rig)
    assert (answer.status, len(engine.heads)) == (200 if times == 1 else 502, 3)


@pytest.mark.parametrize("cut", [b"HTTP/1.1 200 O", b"no HTTP at all\r\n\r\n"])
async def test_an_engine_that_breaks_off_is_told_of(gateway: MakeGateway, cut: bytes) -> None:
    async def breaking(_engine: KeepingEngine, writer: asyncio.StreamWriter) -> None:
        writer.write(cut)
        await writer.drain()
        writer.close()

    async with KeepingEngine(OK, breaking).listening() as engine, gateway(engine.port) as rig:
        answer = await asked_again(rig)
    assert answer.status == 502


async def test_an_error_of_the_engine_is_told(gateway: MakeGateway) -> None:
    error = json_answer(b'{"error":{"message":"too long"}}', "400 Bad Request")
    async with KeepingEngine(OK, error).listening() as engine, gateway(engine.port) as rig:
        answer = await asked_again(rig)
    assert (answer.status, answer.body) == (400, b'{"error":{"message":"too long"}}')


async def test_a_client_that_leaves_while_the_engine_thinks_frees_it(gateway: MakeGateway) -> None:
    async with KeepingEngine(OK, thinking).listening() as engine, gateway(engine.port) as rig:
        await rig.ask(CHAT, BODY)
        async with rig.client() as client:
            await client.send(CHAT, BODY)
            await engine.asked.wait()
            client.writer.transport.abort()
        await rig.page()
        assert rig.desk.is_idle
        engine.go_on.set()
        await asyncio.wait_for(engine.left.wait(), SECOND_S)


async def test_a_client_that_leaves_amid_an_answer_frees_the_engine(gateway: MakeGateway) -> None:
    async with KeepingEngine(OK, in_two).listening() as engine, gateway(engine.port) as rig:
        await rig.ask(CHAT, BODY)
        async with rig.client() as client:
            await client.send(CHAT, BODY)
            await engine.asked.wait()
            client.writer.transport.abort()
        engine.go_on.set()  # nothing can be written amid an answer of known length to see whether it is there
        await rig.page()
        assert rig.desk.is_idle


async def test_a_client_that_says_no_more_is_answered() -> None:
    async with KeepingEngine(OK, thinking).listening() as engine, gateway_on(OWN, (engine.port,), None, None) as rig:
        await rig.ask(CHAT, BODY)
        async with rig.client() as client:
            await client.send(CHAT, BODY)
            client.writer.write_eof()
            await engine.asked.wait()
            engine.go_on.set()
            raw = await client.reader.read()  # interim answers may come first: they tell whether it is there
    assert raw.endswith(ANSWER)


async def test_a_gateway_that_closes_lets_go_of_who_waits() -> None:
    async with KeepingEngine(OK, thinking).listening() as engine:
        async with gateway_on(OWN, (engine.port,), None, None) as rig:
            await rig.ask(CHAT, BODY)
            waiting = rig.client()
            client = await waiting.__aenter__()
            await client.send(CHAT, BODY)
            await engine.asked.wait()
            assert rig.handlers == 1
        assert rig.handlers == 0
        assert await client.reader.read() == b""
        await waiting.__aexit__(None, None, None)
