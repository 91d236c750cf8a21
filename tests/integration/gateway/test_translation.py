"""Official clients of one API served by a provider of another, between real sockets."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anthropic
import openai
import pytest
from anthropic import AsyncAnthropic
from google import genai
from google.genai.types import HttpOptions
from openai import AsyncOpenAI

from kinference.sim.options import EngineOptions
from kinference.sim.serving import serve_engine
from kinference.vocabulary import Api
from tests.integration.gateway.harness import (
    CLOUD_KEY,
    EVENT_HEAD,
    LAST_CHUNK,
    MODEL,
    MakeGateway,
    RawUpstream,
    Rig,
    answering,
    http_chunk,
    json_answer,
)
from tests.unit.shapes.bedrock_converse.frames import frame

CHAT, MESSAGES = Api.OPENAI_CHAT, Api.ANTHROPIC_MESSAGES
CHAT_BODY = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "hi"}], "seed": 1}).encode()
MESSAGES_BODY = json.dumps({"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}).encode()


@asynccontextmanager
async def provided(gateway: MakeGateway, api: Api) -> AsyncIterator[Rig]:
    """A gateway in front of a provider that speaks one API alone."""
    options = EngineOptions(("theirs",), speed=100.0, output_tokens=12)
    async with serve_engine(options) as engine, gateway(provider=(engine.port, api)) as rig:
        yield rig


@asynccontextmanager
async def scripted(gateway: MakeGateway, api: Api, *parts: bytes) -> AsyncIterator[tuple[Rig, RawUpstream]]:
    """A gateway in front of a provider that answers with these bytes."""
    async with RawUpstream(answering(*parts)).listening() as upstream, gateway(provider=(upstream.port, api)) as rig:
        yield rig, upstream


def openai_client(rig: Rig, *, strict: bool = True) -> AsyncOpenAI:
    return AsyncOpenAI(
        base_url=f"http://127.0.0.1:{rig.port}/v1", api_key="x", max_retries=0, _strict_response_validation=strict
    )


def anthropic_client(rig: Rig) -> AsyncAnthropic:
    return AsyncAnthropic(
        base_url=f"http://127.0.0.1:{rig.port}", api_key="x", max_retries=0, _strict_response_validation=True
    )


async def test_the_openai_client_is_served_by_messages(gateway: MakeGateway) -> None:
    async with provided(gateway, MESSAGES) as rig, openai_client(rig) as client:
        answer = await client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "hi"}])
        assert answer.choices[0].message.content
        assert answer.usage is not None
        assert answer.usage.completion_tokens == 12
        stream = await client.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": "hi"}],
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert chunks[-2].choices[0].finish_reason is not None
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 12


async def test_the_anthropic_client_is_served_by_chat(gateway: MakeGateway) -> None:
    async with provided(gateway, CHAT) as rig, anthropic_client(rig) as client:
        answer = await client.messages.create(model=MODEL, max_tokens=12, messages=[{"role": "user", "content": "hi"}])
        assert answer.content[0].type == "text"
        assert answer.usage.output_tokens == 12
        async with client.messages.stream(
            model=MODEL, max_tokens=12, messages=[{"role": "user", "content": "hi"}]
        ) as stream:
            text = "".join([piece async for piece in stream.text_stream])
            final = await stream.get_final_message()
    assert text
    assert final.usage.output_tokens == 12
    assert final.stop_reason in ("end_turn", "max_tokens")


async def test_the_openai_client_gets_its_responses_from_chat_and_messages(gateway: MakeGateway) -> None:
    for api in (CHAT, MESSAGES):
        async with provided(gateway, api) as rig, openai_client(rig) as client:
            answer = await client.responses.create(model=MODEL, input="hi")
            assert answer.output_text
            assert answer.usage is not None
            assert answer.usage.output_tokens == 12
            stream = await client.responses.create(model=MODEL, input="hi", stream=True)
            events = [event async for event in stream]
        assert events[-1].type == "response.completed"
        assert events[-1].response.output_text


async def test_chat_and_messages_are_served_by_responses(gateway: MakeGateway) -> None:
    async with provided(gateway, Api.OPENAI_RESPONSES) as rig, openai_client(rig) as client:
        answer = await client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "hi"}])
        assert answer.choices[0].message.content
    async with (
        provided(gateway, Api.OPENAI_RESPONSES) as rig,
        anthropic_client(rig) as other,
        other.messages.stream(model=MODEL, max_tokens=12, messages=[{"role": "user", "content": "hi"}]) as answered,
    ):
        assert "".join([piece async for piece in answered.text_stream])


def ask_gemini(rig: Rig) -> None:
    """An answer in one piece and a stream, for Google's own client."""
    with genai.Client(api_key="x", http_options=HttpOptions(base_url=f"http://127.0.0.1:{rig.port}")) as client:
        answer = client.models.generate_content(model=MODEL, contents="hi")
        chunks = list(client.models.generate_content_stream(model=MODEL, contents="hi"))
        assert [model.name for model in client.models.list()] == [f"models/{MODEL}"]
        assert client.models.get(model=MODEL).name == f"models/{MODEL}"
    assert answer.text
    assert answer.usage_metadata is not None
    assert answer.usage_metadata.candidates_token_count
    assert "".join(chunk.text or "" for chunk in chunks)
    assert chunks[-1].candidates is not None
    assert chunks[-1].candidates[0].finish_reason is not None


async def test_the_google_client_is_served_by_chat_messages_and_engines(gateway: MakeGateway) -> None:
    for api in (CHAT, MESSAGES):
        async with provided(gateway, api) as rig:
            await asyncio.to_thread(ask_gemini, rig)
    async with (
        serve_engine(EngineOptions((MODEL,), speed=100.0, output_tokens=12)) as engine,
        gateway(engine.port) as rig,
    ):
        await asyncio.to_thread(ask_gemini, rig)


async def test_the_openai_client_is_served_by_gemini(gateway: MakeGateway) -> None:
    part = {"candidates": [{"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP"}]}
    whole = json.dumps(part | {"usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2}}).encode()
    async with scripted(gateway, Api.GEMINI, json_answer(whole)) as (rig, upstream), openai_client(rig) as client:
        answer = await client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "hi"}])
        assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("hi", "stop")
        assert answer.usage is not None
        assert answer.usage.total_tokens == 5
        (received,) = upstream.received
    assert received.target == "/v1/models/theirs:generateContent"  # the configured base URL ends in a version
    assert received.field("x-goog-api-key") == [CLOUD_KEY]
    assert received.field("authorization") == []
    event = http_chunk(b"data: " + whole + b"\r\n\r\n")
    async with scripted(gateway, Api.GEMINI, EVENT_HEAD, event, LAST_CHUNK) as (rig, _), openai_client(rig) as client:
        stream = await client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "hi"}], stream=True
        )
        chunks = [chunk async for chunk in stream]
    assert chunks[-1].choices[0].finish_reason == "stop"


async def test_the_openai_client_gets_embeddings_of_gemini(gateway: MakeGateway) -> None:
    vectors = json.dumps({"embeddings": [{"values": [0.5, -1.0]}]}).encode()
    async with scripted(gateway, Api.GEMINI, json_answer(vectors)) as (rig, upstream):
        async with openai_client(rig, strict=False) as client:  # it asks for base64, which its own types do not allow
            answer = await client.embeddings.create(model=MODEL, input="hi")
        (received,) = upstream.received
    assert answer.data[0].embedding == [0.5, -1.0]
    assert received.target == "/v1/models/theirs:batchEmbedContents"


async def test_gemini_is_relayed_byte_for_byte_to_gemini(gateway: MakeGateway) -> None:
    body = b'{ "contents" :[{"role":"user","parts":[{"text":"hi"}]}], "generationConfig":{"temperature":1e0}}'
    event = b'data: {"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}]}\r\n\r\n'
    path = f"/v1beta/models/{MODEL}:streamGenerateContent"
    async with scripted(gateway, Api.GEMINI, EVENT_HEAD, http_chunk(event), LAST_CHUNK) as (rig, upstream):
        answer = await rig.ask(path + "?alt=sse&key=secret", body)
        (received,) = upstream.received
    assert received.body == body
    assert received.target == "/v1/models/theirs:streamGenerateContent?alt=sse"
    assert answer.body == event
    async with scripted(gateway, Api.GEMINI, EVENT_HEAD, http_chunk(event.replace(b"STOP", b""))) as (rig, _):
        cut = await rig.ask(path, body)
    assert b'"status":"UNAVAILABLE"' in cut.body


async def test_a_client_of_gemini_that_asks_for_no_events_gets_an_array(gateway: MakeGateway) -> None:
    body = b'{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}'
    path = f"/v1beta/models/{MODEL}:streamGenerateContent"
    for api in (CHAT, MESSAGES):
        async with provided(gateway, api) as rig:
            answer = await rig.ask(path, body)
        elements = json.loads(answer.body)
        assert answer.field("content-type") == ["application/json; charset=UTF-8"]
        assert len(elements) > 1
        assert elements[-1]["candidates"][0]["finishReason"]
        assert elements[-1]["usageMetadata"]["candidatesTokenCount"] == 12


async def test_what_was_lost_is_told_and_strictly_refused(gateway: MakeGateway) -> None:
    async with provided(gateway, MESSAGES) as rig:
        answer = await rig.ask("/v1/chat/completions", CHAT_BODY)
        assert answer.status == 200
        assert answer.field("x-kinference-warnings") == ["dropped=seed;assumed=max_tokens:8192"]
        strict = await rig.ask("/v1/chat/completions", CHAT_BODY, "x-kinference-loss: strict\r\n")
        assert strict.status == 400
        assert json.loads(strict.body)["error"]["message"].startswith("seed:")
        silent = await rig.ask("/v1/chat/completions", CHAT_BODY, "x-kinference-loss: silent\r\n")
        assert silent.field("x-kinference-warnings") == ["dropped=seed;assumed=max_tokens:8192"]  # no laxer


async def test_what_an_answer_loses_is_told_beside_what_the_request_lost(gateway: MakeGateway) -> None:
    picture = {"type": "image_generation_call", "id": "i", "status": "completed", "result": "iVBORw0KGgo="}
    said = {"type": "message", "content": [{"type": "output_text", "text": "see"}]}
    answered = json.dumps({"id": "resp_1", "status": "completed", "output": [said, picture]}).encode()
    body = b'{"model":"%b","max_tokens":99,"top_k":5,"messages":[{"role":"user","content":"hi"}]}' % MODEL.encode()
    async with scripted(gateway, Api.OPENAI_RESPONSES, json_answer(answered)) as (rig, _):
        answer = await rig.ask("/v1/messages", body)
    assert answer.status == 200
    assert answer.field("x-kinference-warnings") == ["dropped=top_k;dropped=answer.image"]


async def test_the_same_api_goes_through_untouched(gateway: MakeGateway) -> None:
    async with provided(gateway, CHAT) as rig:
        answer = await rig.ask("/v1/chat/completions", CHAT_BODY, "x-kinference-loss: strict\r\n")
        assert answer.status == 200
        assert answer.field("x-kinference-warnings") == []


async def test_a_page_in_place_of_an_answer_is_an_error_in_the_clients_dialect(gateway: MakeGateway) -> None:
    """Whatever its status: no client could read it, and another destination may do better."""
    for api, path, body in ((CHAT, "/v1/chat/completions", CHAT_BODY), (MESSAGES, "/v1/messages", MESSAGES_BODY)):
        async with scripted(gateway, api, json_answer(b"<html>Sign in</html>")) as (rig, _):
            answer = await rig.ask(path, body)
        assert answer.status == 502
        assert "Sign in" not in answer.body.decode()
        assert json.loads(answer.body)["error"]["message"]


async def test_an_error_is_told_in_the_clients_dialect(gateway: MakeGateway) -> None:
    error = json.dumps({"error": {"message": "too long", "type": "invalid_request_error"}}).encode()
    async with scripted(gateway, CHAT, json_answer(error, "400 Bad Request")) as (rig, upstream):
        answer = await rig.ask("/v1/messages", MESSAGES_BODY, "anthropic-version: 2023-06-01\r\n")
        (received,) = upstream.received
    assert received.target == "/v1/chat/completions"
    assert received.field("anthropic-version") == []
    assert answer.status == 400
    body = json.loads(answer.body)
    assert (body["type"], body["error"]) == ("error", {"type": "invalid_request_error", "message": "too long"})


@pytest.mark.parametrize("stream", [True, False])
async def test_c6_an_answer_that_is_none_is_no_success(gateway: MakeGateway, stream: bool) -> None:
    empty = json.dumps({"choices": []}).encode()
    body = MESSAGES_BODY.replace(b'"max_tokens"', b'"stream":true,"max_tokens"') if stream else MESSAGES_BODY
    async with scripted(gateway, CHAT, json_answer(empty)) as (rig, _):
        answer = await rig.ask("/v1/messages", body)
    assert answer.status == 502
    assert json.loads(answer.body)["error"]["type"] == "api_error"


async def test_a10_a_stream_that_is_cut_is_an_error_and_no_end(gateway: MakeGateway) -> None:
    event = b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
    body = MESSAGES_BODY.replace(b'"max_tokens"', b'"stream":true,"max_tokens"')
    async with scripted(gateway, CHAT, EVENT_HEAD, http_chunk(event)) as (rig, _):
        answer = await rig.ask("/v1/messages", body)
    assert answer.status == 200
    assert b"event: error\n" in answer.body
    assert b"message_stop" not in answer.body


async def test_a_stream_that_is_cut_after_its_last_reason_is_ended_well(gateway: MakeGateway) -> None:
    event = b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}\n\n'
    body = MESSAGES_BODY.replace(b'"max_tokens"', b'"stream":true,"max_tokens"')
    for parts in ((EVENT_HEAD, http_chunk(event)), (EVENT_HEAD, http_chunk(event), LAST_CHUNK)):
        async with scripted(gateway, CHAT, *parts) as (rig, _):
            answer = await rig.ask("/v1/messages", body)
        assert b"event: message_stop\n" in answer.body
        assert b"event: error" not in answer.body


async def test_e17_what_no_destination_can_carry_is_refused_with_its_name(gateway: MakeGateway) -> None:
    held = [{"type": "file", "file": {"file_id": "f"}}]
    async with provided(gateway, MESSAGES) as rig:
        several = await rig.ask("/v1/chat/completions", CHAT_BODY.replace(b'"seed"', b'"n":2,"seed"'))
        named = await rig.ask("/v1/chat/completions", CHAT_BODY.replace(b'"hi"', json.dumps(held).encode()))
    assert (several.status, named.status) == (400, 400)
    assert json.loads(several.body)["error"]["message"].startswith("api:")
    assert json.loads(named.body)["error"]["message"].startswith("document.file_id:")


async def counts(rig: Rig) -> tuple[int, int, int]:
    """What each of the official clients is told that a short question comes to."""
    async with anthropic_client(rig) as messages, openai_client(rig) as openai:
        one = await messages.messages.count_tokens(
            model=MODEL, messages=[{"role": "user", "content": "hello there, how are you?"}]
        )
        two = await openai.responses.input_tokens.count(model=MODEL, input="hello there, how are you?")
    return one.input_tokens, two.input_tokens, await asyncio.to_thread(gemini_count, rig)


def gemini_count(rig: Rig) -> int:
    with genai.Client(api_key="x", http_options=HttpOptions(base_url=f"http://127.0.0.1:{rig.port}")) as client:
        return client.models.count_tokens(model=MODEL, contents="hello there, how are you?").total_tokens or 0


@pytest.mark.parametrize("api", [CHAT, MESSAGES, Api.OPENAI_RESPONSES, None])
async def test_every_client_can_count_tokens_whoever_serves_it(gateway: MakeGateway, api: Api | None) -> None:
    if api is not None:
        async with provided(gateway, api) as rig:
            assert all(5 < count < 30 for count in await counts(rig))
        return
    async with serve_engine(EngineOptions((MODEL,), speed=100.0)) as engine, gateway(engine.port) as rig:
        assert all(5 < count < 30 for count in await counts(rig))


FRAMES_HEAD = EVENT_HEAD.replace(b"text/event-stream", b"application/vnd.amazon.eventstream")
CONVERSE_STREAM = b"".join(
    frame(name, body)
    for name, body in (
        ("messageStart", {"role": "assistant"}),
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "Sunny."}}),
        ("contentBlockStop", {"contentBlockIndex": 0}),
        (
            "contentBlockStart",
            {"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "c1", "name": "weather"}}},
        ),
        ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"toolUse": {"input": '{"city":"Rome"}'}}}),
        ("contentBlockStop", {"contentBlockIndex": 1}),
        ("messageStop", {"stopReason": "tool_use"}),
        ("metadata", {"usage": {"inputTokens": 3, "outputTokens": 5}}),
    )
)


async def test_the_official_clients_stream_tool_calls_out_of_bedrocks_frames(gateway: MakeGateway) -> None:
    pieces = [http_chunk(CONVERSE_STREAM[at : at + 50]) for at in range(0, len(CONVERSE_STREAM), 50)]
    api = Api.BEDROCK_CONVERSE
    async with scripted(gateway, api, FRAMES_HEAD, *pieces, LAST_CHUNK) as (rig, upstream):
        async with (
            anthropic_client(rig) as client,
            client.messages.stream(
                model=MODEL,
                max_tokens=99,
                messages=[{"role": "user", "content": "weather?"}],
                tools=[{"name": "weather", "input_schema": {"type": "object"}}],
            ) as stream,
        ):
            message = await stream.get_final_message()
        (received,) = upstream.received
    assert received.target == "/v1/model/theirs/converse-stream"
    assert json.loads(received.body)["toolConfig"]["tools"][0]["toolSpec"]["name"] == "weather"
    said, called = message.content
    assert said.type == "text"
    assert said.text == "Sunny."
    assert called.type == "tool_use"
    assert (called.id, called.name, called.input) == ("c1", "weather", {"city": "Rome"})
    assert (message.stop_reason, message.usage.input_tokens, message.usage.output_tokens) == ("tool_use", 3, 5)


@pytest.mark.parametrize("api", [CHAT, MESSAGES])
async def test_a_stream_that_begins_with_an_error_is_one_to_the_official_clients(
    gateway: MakeGateway, api: Api
) -> None:
    errors = {
        CHAT: b'data: {"error":{"message":"bad wish","type":"invalid_request_error","param":null,"code":null}}\n\n',
        MESSAGES: b'event: error\ndata: {"type":"error","error":{"type":"invalid_request_error","message":"bad wish"}}\n\n',
    }
    async with scripted(gateway, api, EVENT_HEAD, http_chunk(errors[api]), LAST_CHUNK) as (rig, _):
        async with openai_client(rig) as client:
            with pytest.raises(openai.BadRequestError, match="bad wish"):
                await client.chat.completions.create(
                    model=MODEL, messages=[{"role": "user", "content": "hi"}], stream=True
                )
        async with anthropic_client(rig) as other:
            with pytest.raises(anthropic.BadRequestError, match="bad wish"):
                await other.messages.create(
                    model=MODEL, max_tokens=9, messages=[{"role": "user", "content": "hi"}], stream=True
                )


TOLD_WHOLE = {
    "/v1/chat/completions": {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "up",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9},
    },
    "/v1/messages": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "up",
        "content": [{"type": "text", "text": "hi"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 7, "output_tokens": 2},
    },
}
SAID = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}}
TOLD_IN_EVENTS = {
    "/v1/chat/completions": (
        {"id": "c", "choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": None}]},
        {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ),
    "/v1/messages": (SAID, {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}),
}


@pytest.mark.parametrize("path", TOLD_WHOLE)
async def test_a_stream_was_asked_for_and_the_answer_comes_whole(gateway: MakeGateway, path: str) -> None:
    is_chat = path == "/v1/chat/completions"
    body = (CHAT_BODY if is_chat else MESSAGES_BODY)[:-1] + b',"stream":true}'
    told = json_answer(json.dumps(TOLD_WHOLE[path]).encode())
    async with scripted(gateway, CHAT if is_chat else MESSAGES, told) as (rig, _), rig.client() as client:
        await client.send(path, body)
        answer = await client.answer()
    assert answer.field("content-type") == ["text/event-stream; charset=utf-8"]
    assert b'"content":"hi"' in answer.body or b'"text":"hi"' in answer.body
    assert answer.body.endswith(b"data: [DONE]\n\n" if is_chat else b'data: {"type":"message_stop"}\n\n')
    assert b'"choices":[]' not in answer.body  # nobody asked for usage


@pytest.mark.parametrize("api", [CHAT, MESSAGES])
@pytest.mark.parametrize("path", TOLD_WHOLE)
async def test_an_answer_in_one_piece_was_asked_for_and_a_stream_comes(
    gateway: MakeGateway, path: str, api: Api
) -> None:
    body = CHAT_BODY if path == "/v1/chat/completions" else MESSAGES_BODY
    events = TOLD_IN_EVENTS["/v1/chat/completions" if api is CHAT else "/v1/messages"]
    told = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    parts = (EVENT_HEAD, http_chunk(told), LAST_CHUNK)
    async with scripted(gateway, api, *parts) as (rig, _), rig.client() as client:
        await client.send(path, body)
        answer = await client.answer()
    assert (answer.status, answer.field("content-type")) == (200, ["application/json"])
    whole = json.loads(answer.body)
    assert (whole["choices"][0]["message"]["content"] if "choices" in whole else whole["content"][0]["text"]) == "hi"


async def test_a_stream_that_was_not_asked_for_and_breaks_off_is_an_error(gateway: MakeGateway) -> None:
    told = b"data: " + json.dumps(SAID).encode() + b"\n\n"
    async with (
        scripted(gateway, MESSAGES, EVENT_HEAD, http_chunk(told), LAST_CHUNK) as (rig, _),
        rig.client() as client,
    ):
        await client.send("/v1/messages", MESSAGES_BODY)
        answer = await client.answer()
    assert (answer.status, json.loads(answer.body)["error"]["type"]) == (502, "api_error")


async def test_a_client_of_responses_has_anthropic_call_a_server(gateway: MakeGateway) -> None:
    told = json_answer(json.dumps(TOLD_WHOLE["/v1/messages"]).encode())
    tool = {"type": "mcp", "server_label": "docs", "server_url": "https://mcp.example", "require_approval": "never"}
    async with scripted(gateway, MESSAGES, told) as (rig, upstream):
        for tools in ([tool], []):
            body = {"model": MODEL, "input": "hi", "tools": tools}
            assert (await rig.ask("/v1/responses", json.dumps(body).encode())).status == 200
    asked, plain = upstream.received
    assert asked.field("anthropic-beta") == ["mcp-client-2025-11-20"]
    assert json.loads(asked.body)["mcp_servers"] == [{"type": "url", "url": "https://mcp.example", "name": "docs"}]
    assert plain.field("anthropic-beta") == []
