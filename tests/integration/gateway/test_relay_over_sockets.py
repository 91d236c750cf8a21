"""Requests through a real gateway, carriers and all, against upstreams that answer byte by byte."""

import asyncio
import gzip
import json

import pytest

from kinference.gateway.options import GatewayOptions
from kinference.vocabulary import Api
from tests.integration.gateway.harness import (
    CLOUD_KEY,
    EVENT_HEAD,
    LAST_CHUNK,
    MakeGateway,
    RawUpstream,
    Received,
    answering,
    http_chunk,
    json_answer,
)

CHAT = "/v1/chat/completions"
BODY = b'{ "model" : "m", "messages":[{"role":"user","content":"h\\u00e9"}], "temperature":1.0, "x":1e400 }'
STREAMING = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'
ANSWER = b'{ "id":"1", "choices":[], "usage":{"prompt_tokens":7,"completion_tokens":2} }'
EVENT = 'data: {"choices":[{"index":0,"delta":{"content":"hé😀"}}]}\n\n'.encode()
FINISH = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}\n\n'
DONE = b"data: [DONE]\n\n"


async def test_bodies_cross_byte_for_byte_in_both_directions(gateway: MakeGateway) -> None:
    async with RawUpstream(answering(json_answer(ANSWER))).listening() as engine, gateway(engine.port) as rig:
        answer = await rig.ask(CHAT, BODY)
    assert engine.received[0].body == BODY
    assert (answer.status, answer.body, answer.is_complete) == (200, ANSWER, True)
    assert answer.field("content-length") == [str(len(ANSWER))]
    assert answer.field("x-kinference-endpoint") == [f"127.0.0.1:{engine.port}"]
    assert float(answer.field("x-kinference-overhead-ms")[0]) > 0


async def test_a1_a_stream_cut_at_every_byte_reaches_the_client_unchanged(gateway: MakeGateway) -> None:
    stream = EVENT + FINISH + DONE
    parts = [http_chunk(stream[i : i + 1]) for i in range(len(stream))]
    script = answering(EVENT_HEAD, *parts, LAST_CHUNK)
    async with RawUpstream(script).listening() as engine, gateway(engine.port) as rig:
        answer = await rig.ask(CHAT, STREAMING)
    assert (answer.body, answer.is_complete) == (stream, True)


async def test_a17_each_chunk_is_passed_on_before_the_next_one_exists(gateway: MakeGateway) -> None:
    go_on = asyncio.Event()

    async def script(_request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(EVENT_HEAD + http_chunk(EVENT))
        await go_on.wait()
        writer.write(http_chunk(FINISH + DONE) + LAST_CHUNK)

    async with RawUpstream(script).listening() as engine, gateway(engine.port) as rig, rig.client() as client:
        await client.send(CHAT, STREAMING)
        head = await client.until(b"\r\n\r\n")
        await client.until(EVENT)  # would wait for ever if anything were held back
        go_on.set()
        await client.until(DONE)
    assert b"x-accel-buffering: no" in head.lower()
    assert b"cache-control: no-cache" in head.lower()
    assert b"content-length" not in head.lower()


async def test_g13_usage_is_counted_and_kept_from_a_client_that_did_not_ask(gateway: MakeGateway) -> None:
    script = answering(EVENT_HEAD, http_chunk(EVENT), http_chunk(FINISH + USAGE + DONE), LAST_CHUNK)
    async with RawUpstream(script).listening() as engine, gateway(engine.port) as rig:
        answer = await rig.ask(CHAT, STREAMING)
        page = await rig.page()
    assert answer.body == EVENT + FINISH + DONE
    assert json.loads(engine.received[0].body)["stream_options"] == {"include_usage": True}
    assert 'kinference_gateway_tokens_total{kind="prompt"} 7.0' in page


async def test_a10_a_stream_that_the_engine_breaks_off_ends_in_an_error_event(gateway: MakeGateway) -> None:
    script = answering(EVENT_HEAD, http_chunk(EVENT), http_chunk(EVENT))
    async with RawUpstream(script).listening() as engine, gateway(engine.port) as rig:
        answer = await rig.ask(CHAT, STREAMING)
    events = answer.body.split(b"\n\n")
    assert json.loads(events[2].removeprefix(b"data: "))["error"]["code"] == "upstream_closed"
    assert b"[DONE]" not in answer.body


async def test_a10_an_anthropic_stream_that_breaks_off_ends_in_an_error_event(gateway: MakeGateway) -> None:
    start = b'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":3}}}\n\n'
    delta = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{}}\n\n'
    body = STREAMING.replace(b'"stream"', b'"max_tokens":9,"stream"')
    async with (
        RawUpstream(answering(EVENT_HEAD, http_chunk(start + delta))).listening() as engine,
        gateway(engine.port) as rig,
    ):
        answer = await rig.ask("/v1/messages", body)
    assert answer.body.startswith(start + delta)
    assert b"event: error\ndata: " in answer.body
    assert b"message_stop" not in answer.body
    async with (
        RawUpstream(answering(EVENT_HEAD, http_chunk(start))).listening() as engine,
        gateway(engine.port) as rig,
    ):
        answer = await rig.ask("/v1/messages", body)
    assert answer.status == 502  # nothing was said that could not be said by another
    assert json.loads(answer.body)["error"]["type"] == "api_error"


async def test_an_answer_in_one_piece_that_breaks_off_cannot_be_taken_for_a_whole_one(gateway: MakeGateway) -> None:
    script = answering(json_answer(ANSWER)[:-10])
    async with RawUpstream(script).listening() as engine, gateway(engine.port) as rig, rig.client() as client:
        await client.send(CHAT, BODY)
        with pytest.raises((ConnectionError, AssertionError)):
            assert (await client.answer()).is_complete


@pytest.mark.parametrize("streaming", [True, False])
async def test_g7_a_client_that_leaves_closes_the_upstream_within_a_second(
    gateway: MakeGateway, *, streaming: bool
) -> None:
    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        if streaming:
            writer.write(EVENT_HEAD + http_chunk(EVENT))
        await request.closed.wait()

    async with RawUpstream(script).listening() as engine, gateway(engine.port) as rig:
        async with rig.client() as client:
            await client.send(CHAT, STREAMING)
            if streaming:
                await client.until(EVENT)
            else:
                await engine.arrived.wait()
        async with asyncio.timeout(1.0):
            await engine.received[0].closed.wait()


async def test_h2_a_failing_engine_is_replaced_before_the_client_notices(gateway: MakeGateway) -> None:
    limited = answering(json_answer(b'{"error":{}}', "429 Too Many Requests", "retry-after: 7\r\n"))
    async with (
        RawUpstream(limited).listening() as bad,
        RawUpstream(answering(json_answer(ANSWER))).listening() as good,
        gateway(bad.port, good.port) as rig,
    ):
        answers = [await rig.ask(CHAT, BODY) for _ in range(8)]
    assert [answer.status for answer in answers] == [200] * 8
    assert len(good.received) == 8


async def test_an_engine_that_refuses_connections_is_replaced(gateway: MakeGateway) -> None:
    async with RawUpstream(answering()).listening() as gone:
        dead = gone.port
    async with RawUpstream(answering(json_answer(ANSWER))).listening() as good, gateway(dead, good.port) as rig:
        assert [(await rig.ask(CHAT, BODY)).status for _ in range(8)] == [200] * 8


async def test_h1_an_only_engines_429_reaches_the_client_with_its_retry_after(gateway: MakeGateway) -> None:
    limited = answering(
        json_answer(b'{"error":{"message":"slow down"}}', "429 Too Many Requests", "retry-after: 7\r\n")
    )
    async with RawUpstream(limited).listening() as engine, gateway(engine.port) as rig:
        answer = await rig.ask(CHAT, BODY)
    assert (answer.status, answer.field("retry-after")) == (429, ["7"])
    assert json.loads(answer.body)["error"]["message"] == "slow down"


async def test_an_only_engine_that_is_down_is_told_in_the_clients_dialect_without_its_address(
    gateway: MakeGateway,
) -> None:
    async with RawUpstream(answering()).listening() as gone:
        dead = gone.port
    async with gateway(dead) as rig:
        answer = await rig.ask("/v1/messages", BODY.replace(b'"x"', b'"max_tokens":9,"x"'))
    assert answer.status == 502
    assert json.loads(answer.body)["error"]["type"] == "api_error"
    assert str(dead).encode() not in answer.body


async def test_h10_a_compressed_error_is_readable(gateway: MakeGateway) -> None:
    packed = gzip.compress(b'{"error":{"message":"bad"}}')
    script = answering(json_answer(packed, "400 Bad Request", "content-encoding: gzip\r\n"))
    async with RawUpstream(script).listening() as engine, gateway(engine.port) as rig:
        answer = await rig.ask(CHAT, BODY)
    assert (answer.status, answer.field("content-encoding")) == (400, [])
    assert json.loads(answer.body)["error"]["message"] == "bad"


async def test_h19_our_refused_credential_is_not_the_clients_problem(gateway: MakeGateway) -> None:
    script = answering(json_answer(f'{{"error":"bad key {CLOUD_KEY}"}}'.encode(), "401 Unauthorized"))
    async with (
        RawUpstream(script).listening() as cloud,
        gateway(provider=(cloud.port, Api.OPENAI_CHAT)) as rig,
    ):
        answer = await rig.ask(CHAT, BODY, "authorization: Bearer tenant\r\nx-api-key: tenant\r\ncookie: a=b\r\n")
    (seen,) = cloud.received
    assert (seen.target, seen.field("authorization"), seen.field("x-api-key"), seen.field("cookie")) == (
        "/v1/chat/completions",
        [f"Bearer {CLOUD_KEY}"],
        [],
        [],
    )
    assert json.loads(seen.body)["model"] == "theirs"
    assert answer.status == 502
    assert json.loads(answer.body)["error"]["code"] == "upstream_auth_error"
    assert CLOUD_KEY.encode() not in answer.head + answer.body


async def test_i9_an_engine_sees_no_credential_and_no_hop_by_hop_field(gateway: MakeGateway) -> None:
    headers = "authorization: Bearer t\r\nx-api-key: t\r\ncookie: a=b\r\naccept-encoding: gzip\r\nx-session: s\r\nte: trailers\r\n"
    async with RawUpstream(answering(json_answer(ANSWER))).listening() as engine, gateway(engine.port) as rig:
        await rig.ask(CHAT + "?page=a%2Bb%2Fc%3D%26d", BODY, headers + "traceparent: 00-a-b-01\r\n")
    (seen,) = engine.received
    assert seen.target == CHAT + "?page=a%2Bb%2Fc%3D%26d"
    assert [seen.field(name) for name in ("authorization", "x-api-key", "cookie", "te")] == [[]] * 4
    assert seen.field("accept-encoding") == ["identity"]
    assert (seen.field("x-session"), seen.field("traceparent")) == (["s"], ["00-a-b-01"])


@pytest.mark.parametrize("declared", [True, False])
async def test_i3_too_large_a_body_is_a_413_in_the_clients_dialect(gateway: MakeGateway, *, declared: bool) -> None:
    options = GatewayOptions(body_bytes_max=100)
    async with gateway(1, options=options) as rig, rig.client() as client:
        if declared:
            await client.send("/v1/messages", b"x" * 101)
        else:
            head = "POST /v1/messages HTTP/1.1\r\nhost: g\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"
            client.writer.write(head.encode() + http_chunk(b"x" * 101) + LAST_CHUNK)
        answer = await client.answer()
    assert answer.status == 413
    assert json.loads(answer.body)["error"]["type"] == "request_too_large"


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        (b"not json", 400, "invalid_request_error"),
        (b"", 400, "invalid_request_error"),
        (b"[]", 400, "invalid_request_error"),
        (BODY.replace(b'"m"', b'"nobody"'), 404, "not_found_error"),
    ],
)
async def test_bad_input_is_told_in_the_clients_dialect_and_leaves_nothing_behind(
    gateway: MakeGateway, body: bytes, status: int, kind: str
) -> None:
    async with gateway(1) as rig:
        answer = await rig.ask(CHAT, body)
        page = await rig.page()
    assert answer.status == status
    assert json.loads(answer.body)["error"]["type"] == kind
    assert "kinference_picker_buffered_bytes 0.0" in page


async def test_no_ready_endpoint_is_an_overload_with_a_retry_after(gateway: MakeGateway) -> None:
    async with gateway() as rig:
        answer = await rig.ask(CHAT, BODY)
    assert answer.status == 503
    assert answer.field("retry-after") == ["1"]


async def test_i1_preflights_are_answered(gateway: MakeGateway) -> None:
    async with gateway() as rig:
        root = await rig.ask("/", b"", method="HEAD")
        health = await rig.ask("/health", b"", method="GET")
    assert (root.status, root.body, health.status) == (200, b"", 200)


async def test_a19_a_stream_silent_after_its_head_is_kept_alive(gateway: MakeGateway) -> None:
    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(EVENT_HEAD)
        await request.closed.wait()

    options = GatewayOptions(keep_alive=0.02)
    async with (
        RawUpstream(script).listening() as engine,
        gateway(engine.port, options=options) as rig,
        rig.client() as client,
    ):
        await client.send(CHAT, STREAMING)
        await client.until(b": keep-alive\n\n")
        await client.until(b": keep-alive\n\n")


async def test_h8_nothing_is_tried_again_once_the_client_has_seen_a_byte(gateway: MakeGateway) -> None:
    script = answering(EVENT_HEAD, http_chunk(EVENT))
    async with (
        RawUpstream(script).listening() as one,
        RawUpstream(script).listening() as other,
        gateway(one.port, other.port) as rig,
    ):
        answer = await rig.ask(CHAT, STREAMING)
    assert answer.body.count(EVENT) == 1
    assert len(one.received) + len(other.received) == 1


async def test_a20_an_anthropic_ping_reaches_the_client(gateway: MakeGateway) -> None:
    stream = (
        b'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":3}}}\n\n'
        b'event: ping\ndata: {"type": "ping"}\n\n'
        b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
    )
    script = answering(EVENT_HEAD, http_chunk(stream), LAST_CHUNK)
    async with RawUpstream(script).listening() as engine, gateway(engine.port) as rig:
        answer = await rig.ask("/v1/messages", STREAMING.replace(b'"stream"', b'"max_tokens":9,"stream"'))
    assert answer.body == stream


async def test_j4_an_address_in_the_body_leads_nowhere(gateway: MakeGateway) -> None:
    async with (
        RawUpstream(answering(json_answer(b"{}"))).listening() as lure,
        RawUpstream(answering(json_answer(ANSWER))).listening() as cloud,
        gateway(provider=(cloud.port, Api.OPENAI_CHAT)) as rig,
    ):
        url = f"http://127.0.0.1:{lure.port}/".encode()
        body = BODY.replace(b'"x"', b'"api_base":"' + url + b'","base_url":"' + url + b'","x"')
        answer = await rig.ask(CHAT, body)
    assert answer.status == 200
    assert (len(cloud.received), lure.received) == (1, [])


async def test_a_client_that_vanishes_mid_upload_leaves_nothing_buffered(gateway: MakeGateway) -> None:
    async with gateway(1) as rig:
        async with rig.client() as client:
            client.writer.write(b"POST /v1/messages HTTP/1.1\r\nhost: g\r\ncontent-length: 99\r\n\r\nhalf")
            await client.writer.drain()
        async with asyncio.timeout(1.0):
            page = ""
            while "requests_total{" not in page:
                page = await rig.page()
                await asyncio.sleep(0.001)
    assert 'outcome="client_closed",status="499"' in page
    assert "kinference_picker_picks_total{" not in page
    assert "kinference_picker_buffered_bytes 0.0" in page
