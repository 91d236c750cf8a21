from base64 import b64decode
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kinference.sim.engine import Engine
from kinference.sim.inference import CALLS
from kinference.sim.options import EngineOptions
from kinference.sim.timing import Timing

Make = Callable[..., Engine]
Ask = Callable[..., Awaitable[Any]]

CHAT = "/v1/chat/completions"
TURN = [{"role": "user", "content": "hello, how are you today?"}]
BODIES: dict[str, dict[str, object]] = {
    CHAT: {"messages": TURN},
    "/v1/completions": {"prompt": "hello"},
    "/v1/responses": {"input": "hello"},
    "/v1/messages": {"messages": TURN, "max_tokens": 5},
    "/v1/embeddings": {"input": "hello"},
}


@pytest.mark.parametrize("path", sorted(CALLS))
async def test_every_call_is_answered_whole(make_engine: Make, ask: Ask, path: str) -> None:
    answer = await ask(make_engine(), "POST", path, {"model": "m", **BODIES[path]})
    assert (answer.status, answer.is_finished) == (200, True)
    assert answer.json["model"] == "m"
    assert answer.answer_headers[b"content-length"] == str(len(answer.raw)).encode()


@pytest.mark.parametrize("path", sorted(set(CALLS) - {"/v1/embeddings"}))
async def test_every_call_but_embeddings_streams(make_engine: Make, ask: Ask, path: str) -> None:
    answer = await ask(make_engine(), "POST", path, {"model": "m", "stream": True, **BODIES[path]})
    assert answer.answer_headers[b"content-type"] == b"text/event-stream; charset=utf-8"
    assert len(answer.events) > 5
    assert answer.is_finished


async def test_a_stream_says_what_the_whole_answer_says(make_engine: Make, ask: Ask) -> None:
    engine = make_engine()
    whole = await ask(engine, "POST", CHAT, {"messages": TURN})
    stream = await ask(engine, "POST", CHAT, {"messages": TURN, "stream": True})
    said = "".join(event["choices"][0]["delta"]["content"] for event in stream.events)
    assert said == whole.json["choices"][0]["message"]["content"]
    assert len(said.split()) == 8


@pytest.mark.parametrize(
    ("wish", "tokens", "reason"),
    [
        ({}, 8, "stop"),
        ({"max_tokens": 3}, 3, "length"),
        ({"max_tokens": 100}, 8, "stop"),
        ({"max_tokens": 100, "ignore_eos": True}, 100, "length"),
        ({"max_completion_tokens": 2}, 2, "length"),
    ],
)
async def test_an_answer_is_as_long_as_asked_or_as_the_engine_would_talk(
    make_engine: Make, ask: Ask, wish: dict[str, object], tokens: int, reason: str
) -> None:
    answer = await ask(make_engine(), "POST", CHAT, {"messages": TURN, **wish})
    assert answer.json["usage"]["completion_tokens"] == tokens
    assert answer.json["choices"][0]["finish_reason"] == reason


async def test_a_model_is_known_by_all_its_names_and_by_none(make_engine: Make, ask: Ask) -> None:
    engine = make_engine()
    for name, answered in (("m", "m"), ("alias", "alias"), ("", "m")):
        answer = await ask(engine, "POST", CHAT, {"model": name, "messages": TURN})
        assert answer.json["model"] == answered


async def test_an_unknown_model_is_not_found(make_engine: Make, ask: Ask) -> None:
    answer = await ask(make_engine(), "POST", CHAT, {"model": "other", "messages": TURN})
    assert answer.status == 404
    assert answer.json == {
        "error": {
            "message": "The model `other` does not exist.",
            "type": "NotFoundError",
            "param": "model",
            "code": 404,
        }
    }


@pytest.mark.parametrize(
    "body",
    [
        {"prompt": "x" * 4 * 200},
        {"prompt": "x" * 4 * 160},
        {"prompt": "x" * 4 * 100, "max_tokens": 61},
    ],
)
async def test_what_exceeds_the_context_is_a_bad_request(make_engine: Make, ask: Ask, body: dict[str, object]) -> None:
    engine = make_engine(EngineOptions(models=("m",), timing=Timing(kv_blocks=10, block_tokens=16)))
    answer = await ask(engine, "POST", "/v1/completions", body)
    assert answer.status == 400
    assert "maximum context length is 160 tokens" in answer.json["error"]["message"]


async def test_a_request_without_a_limit_gets_the_room_that_is_left(make_engine: Make, ask: Ask) -> None:
    options = EngineOptions(models=("m",), timing=Timing(kv_blocks=10, block_tokens=16), speed=10_000)
    answer = await ask(make_engine(options), "POST", "/v1/completions", {"prompt": "x" * 4 * 150})
    assert answer.json["usage"]["completion_tokens"] == 10


async def test_a_salt_keeps_tenants_apart(make_engine: Make, ask: Ask) -> None:
    engine = make_engine()
    cached = []
    for salt in ("a", "b", "a"):
        answer = await ask(engine, "POST", "/v1/completions", {"prompt": "x" * 400, "cache_salt": salt})
        cached.append(answer.json["usage"]["prompt_tokens_details"]["cached_tokens"])
    assert cached == [0, 0, 96]


async def test_embeddings_depend_on_the_text_and_come_in_two_formats(make_engine: Make, ask: Ask) -> None:
    engine = make_engine()
    plain = await ask(engine, "POST", "/v1/embeddings", {"input": ["a", "b", "a"], "dimensions": 4})
    vectors = [entry["embedding"] for entry in plain.json["data"]]
    assert vectors[0] == vectors[2] != vectors[1]
    assert len(vectors[0]) == 4
    assert plain.json["usage"] == {"prompt_tokens": 3, "total_tokens": 3, "completion_tokens": 0}
    packed = await ask(engine, "POST", "/v1/embeddings", {"input": "a", "encoding_format": "base64"})
    assert len(b64decode(packed.json["data"][0]["embedding"])) == 4 * 64
    refused = await ask(engine, "POST", "/v1/embeddings", {"input": "a", "dimensions": 0})
    assert refused.status == 400
