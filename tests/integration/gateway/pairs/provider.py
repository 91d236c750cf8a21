"""A stand-in for eleven providers, since the real ones cannot be run here: it takes what they take, refuses what they
refuse and answers as they do. What it is to answer next, a test says.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kinference.vocabulary import Api
from tests.integration.gateway.harness import EVENT_HEAD, LAST_CHUNK, Received, http_chunk, json_answer
from tests.integration.gateway.pairs import answers_openai as openai
from tests.integration.gateway.pairs import answers_others as others
from tests.integration.gateway.pairs.meaning import Broken, Failed, Reply, Said
from tests.integration.gateway.pairs.validating import refused
from tests.unit.shapes.bedrock_converse.frames import frame

EVENTS_OF_AMAZON = EVENT_HEAD.replace(b"text/event-stream", b"application/vnd.amazon.eventstream")


@dataclass(frozen=True)
class Speech:
    """How one API answers."""

    whole: Callable[[Said, str], Any]
    events: Callable[[Said, str], Iterator[bytes]]
    error: Callable[[int, str], Any]
    broken: Callable[[str], bytes]
    """An error within a stream."""


def _openai_broken(message: str) -> bytes:
    return openai.event(openai.error(500, message))


def _responses_broken(message: str) -> bytes:
    told = {"type": "error", "code": "server_error", "message": message, "param": None, "sequence_number": 9}
    return openai.event(told, "error")


CHAT = Speech(openai.chat_whole, openai.chat_events, openai.error, _openai_broken)
SPEECHES: Mapping[Api, Speech] = {
    Api.OPENAI_CHAT: CHAT,
    Api.OPENAI_RESPONSES: Speech(openai.response_whole, openai.response_events, openai.error, _responses_broken),
    Api.OPENAI_COMPLETIONS: Speech(openai.completion_whole, openai.completion_events, openai.error, _openai_broken),
    Api.ANTHROPIC_MESSAGES: Speech(
        others.message_whole,
        others.message_events,
        others.message_error,
        lambda message: openai.event(others.message_error(529, message), "error"),
    ),
    Api.GEMINI: Speech(
        others.gemini_whole,
        others.gemini_events,
        others.gemini_error,
        lambda message: openai.event(others.gemini_error(503, message), end="\r\n\r\n"),
    ),
    Api.BEDROCK_CONVERSE: Speech(
        others.converse_whole,
        others.converse_events,
        others.converse_error,
        lambda message: frame("modelStreamErrorException", {"message": message}, "exception"),
    ),
}


@dataclass(frozen=True)
class Request:
    """What one of the providers was sent, and why it would have refused it."""

    api: Api
    """Whose path it came by."""
    path: str
    body: Any
    faults: list[str]


@dataclass
class Providers:
    """All of them, behind one port: each has its own first segment."""

    reply: Reply = field(default_factory=Said)
    requests: list[Request] = field(default_factory=list)
    bytes_at_once: int = 1 << 20

    async def script(self, received: Received, writer: asyncio.StreamWriter) -> None:
        _, name, path = received.target.split("/", 2)
        body = json.loads(received.body)
        shape = _shape(Api(name), path)
        is_streaming = _is_stream(path) or body.get("stream") is True
        faults = _faults(shape, path, body)
        self.requests.append(Request(Api(name), f"/{path}", body, faults))
        answer = self._refusal(shape, faults) if faults else self._answer(Api(name), shape, path, body, is_streaming)
        at_once = self.bytes_at_once  # which the next test sets anew, once the client has what it wants
        for at in range(0, len(answer), at_once):
            writer.write(answer[at : at + at_once])
            await writer.drain()
            if at_once < len(answer):
                await asyncio.sleep(0)

    def _refusal(self, shape: Api, faults: list[str]) -> bytes:
        speech = SPEECHES.get(shape, CHAT)
        return json_answer(json.dumps(speech.error(400, "; ".join(faults))).encode(), "400 Bad Request")

    def _answer(self, api: Api, shape: Api, path: str, body: Any, is_streaming: bool) -> bytes:
        if embeds(path):
            return json_answer(json.dumps(embeddings(path, body)).encode())
        if counts(path):
            return json_answer(json.dumps(COUNTED.get(shape, {})).encode()) if shape in COUNTED else NO_PATH
        speech, reply = SPEECHES[shape], self.reply
        model = str(body.get("model", "theirs"))
        if isinstance(reply, Failed):
            return _failed(shape, reply)
        said = reply.said if isinstance(reply, Broken) else reply
        if not is_streaming:
            assert isinstance(reply, Said), "only a stream can break"
            return json_answer(json.dumps(speech.whole(said, model), ensure_ascii=False).encode())
        head = EVENTS_OF_AMAZON if shape is Api.BEDROCK_CONVERSE else EVENT_HEAD
        events = [*_events(api, speech, said, model)]
        if isinstance(reply, Said):
            return head + http_chunk(b"".join(events)) + LAST_CHUNK
        events = events[: len(events) // 2]
        if reply.message:
            events.append(speech.broken(reply.message))
        return head + http_chunk(b"".join(events)) + LAST_CHUNK


def _failed(shape: Api, reply: Failed) -> bytes:
    if shape is Api.GEMINI:
        told, extra = others.gemini_error(reply.status, reply.message, reply.retry_after), ""
    else:
        told = SPEECHES[shape].error(reply.status, reply.message)
        extra = f"retry-after: {reply.retry_after}\r\n" if reply.retry_after else ""
    return json_answer(json.dumps(told).encode(), f"{reply.status} Failed", extra)


def _events(api: Api, speech: Speech, said: Said, model: str) -> Iterator[bytes]:
    if api is Api.AZURE_OPENAI and speech is CHAT:
        return openai.chat_events(said, model, is_azure=True)
    return speech.events(said, model)


def _shape(api: Api, path: str) -> Api:
    """What is spoken at a path: Azure has all of OpenAI's APIs."""
    if api is not Api.AZURE_OPENAI:
        return api.shape
    action = path.partition("?")[0].rpartition("/")[2]
    own = {"responses": Api.OPENAI_RESPONSES, "embeddings": Api.OPENAI_EMBEDDINGS}
    if path.partition("?")[0].endswith("chat/completions"):
        return Api.OPENAI_CHAT
    if path.endswith("responses/input_tokens"):
        return Api.OPENAI_RESPONSES
    return own.get(action, Api.OPENAI_COMPLETIONS)


def _is_stream(path: str) -> bool:
    return any(word in path for word in (":streamGenerateContent", ":streamRawPredict", "/converse-stream"))


def embeds(path: str) -> bool:
    return any(word in path for word in (":batchEmbedContents", ":predict", "/embeddings", "/invoke"))


TOKENS = 14
COUNTED: Mapping[Api, Any] = {
    Api.OPENAI_RESPONSES: {"object": "response.input_tokens", "input_tokens": TOKENS},
    Api.ANTHROPIC_MESSAGES: {"input_tokens": TOKENS},
    Api.GEMINI: {"totalTokens": TOKENS},
    Api.BEDROCK_CONVERSE: {"inputTokens": TOKENS},
}
"""What those who count tokens answer."""
NO_PATH = json_answer(b'{"detail":"Not Found"}', "404 Not Found")


def counts(path: str) -> bool:
    words = ("/count_tokens", "/input_tokens", ":countTokens", "/count-tokens", "tokenize")
    return any(word in path for word in words)


def _faults(shape: Api, path: str, body: Any) -> list[str]:
    if embeds(path) or counts(path):
        return []
    if "rawPredict" in path or "RawPredict" in path:
        if body.pop("anthropic_version", "") != "vertex-2023-10-16" or "model" in body:
            return ["anthropic_version: missing, or model given"]
        body["model"] = "in the path"
    return refused(shape, body)


def embeddings(path: str, body: Any) -> Any:
    """A vector for every text, the n-th being (n, 0.5)."""
    if ":batchEmbedContents" in path:
        return {"embeddings": [{"values": vector} for vector in vectors(body["requests"])]}
    if ":predict" in path:
        told = [{"values": vector, "statistics": {"token_count": 3}} for vector in vectors(body["instances"])]
        return {"predictions": [{"embeddings": one} for one in told]}
    if "/invoke" in path:
        return {"id": "e1", "response_type": "embeddings_floats", "embeddings": vectors(body["texts"])}
    inputs = body["input"] if isinstance(body["input"], list) else [body["input"]]
    data = [{"object": "embedding", "index": at, "embedding": one} for at, one in enumerate(vectors(inputs))]
    return {"object": "list", "model": "theirs", "data": data, "usage": {"prompt_tokens": 3, "total_tokens": 3}}


def vectors(texts: list[Any]) -> list[list[float]]:
    return [[at, 0.5] for at in range(len(texts))]
