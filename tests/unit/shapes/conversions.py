"""Bodies and streams taken from one API to another, as the picker and the gateway do it."""

import json
from typing import Any

from kinference.shapes.answers import Frame
from kinference.shapes.lost import header
from kinference.shapes.sse import SseReader
from kinference.shapes.translate import Plan, Way, emit, plan, reader_of
from kinference.shapes.way_back import StreamTranslation, read_answer, write_answer
from kinference.vocabulary import Api, Loss

CHAT, MESSAGES = Api.OPENAI_CHAT, Api.ANTHROPIC_MESSAGES
RESPONSES, COMPLETIONS = Api.OPENAI_RESPONSES, Api.OPENAI_COMPLETIONS
EMBEDDINGS = Api.OPENAI_EMBEDDINGS
GEMINI, CONVERSE = Api.GEMINI, Api.BEDROCK_CONVERSE
FRAME = Frame("req_1", 1700000000)
HI = [{"role": "user", "content": "hi"}]
TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}


def planned(body: Any, client: Api, destination: Api, loss: Loss = Loss.WARN, model: str = "m") -> Plan:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return plan(raw, Way(client, destination, model, loss))


def sent(body: Any, client: Api, destination: Api, model: str = "m") -> Any:
    """The body that the destination gets."""
    return json.loads(emit(planned(body, client, destination, model=model)))


def chat_to_messages(**members: Any) -> Any:
    return sent({"model": "m", "messages": HI, **members}, CHAT, MESSAGES)


def messages_to_chat(**members: Any) -> Any:
    return sent({"model": "m", "max_tokens": 9, "messages": HI, **members}, MESSAGES, CHAT)


def warnings(body: Any, client: Api, destination: Api, model: str = "m") -> str:
    return header(planned(body, client, destination, model=model).losses)


def a_plan(client: Api, destination: Api, **members: Any) -> Plan:
    """A translation of as small a request as there is."""
    bodies: dict[Api, dict[str, Any]] = {
        CHAT: {"model": "m", "messages": HI, "stream_options": {"include_usage": True}},
        MESSAGES: {"model": "m", "max_tokens": 9, "messages": HI},
        RESPONSES: {"model": "m", "input": "hi"},
        COMPLETIONS: {"model": "m", "prompt": "hi"},
        EMBEDDINGS: {"model": "m", "input": "hi"},
        GEMINI: {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
    }
    return planned(bodies[client] | members, client, destination)


def answered(body: Any, client: Api, destination: Api, **members: Any) -> Any:
    """What the client gets for a destination's whole answer."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    back = a_plan(client, destination, **members).back
    frame = Frame(FRAME.id, FRAME.created, back.wants_usage, back.echo)
    return json.loads(write_answer(back, read_answer(back, raw), frame))


class Stream:
    """A destination's stream as the client gets it."""

    def __init__(self, client: Api, destination: Api, frame: Frame = FRAME, **members: Any) -> None:
        self.back = a_plan(client, destination, **members).back
        self.translation = StreamTranslation(self.back, frame)
        self._reader = reader_of(self.back)
        self.raw = b""

    def feed(self, *chunks: bytes) -> "Stream":
        for chunk in chunks:
            self.raw += b"".join(self.translation.feed(event) for event in self._reader.feed(chunk))
        return self

    def end(self) -> "Stream":
        """The destination closes."""
        tail = self._reader.tail()
        self.raw += self.translation.feed(tail) if tail else b""
        self.raw += self.translation.close()
        return self

    @property
    def events(self) -> list[Any]:
        """What the client reads, decoded; the end mark as a string."""
        found = [event.data for event in SseReader().feed(self.raw) if event.data]
        return [data.decode() if data == b"[DONE]" else json.loads(data) for data in found]

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.events]


def data(*events: Any) -> bytes:
    """Events without names."""
    texts = (event if isinstance(event, str) else json.dumps(event) for event in events)
    return b"".join(f"data: {text}\n\n".encode() for text in texts)


def named(*events: Any) -> bytes:
    """Events named by their type."""
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def chunk(delta: Any, finish: str | None = None, **members: Any) -> Any:
    return {"id": "c1", "model": "up", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **members}
