"""Every golden answer and event is one that the client's official SDK takes, with its own strict validation."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from anthropic._models import validate_type as anthropic_validate
from anthropic.types import Message, RawMessageStreamEvent
from google.genai.types import GenerateContentResponse
from openai._models import validate_type as openai_validate
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent

from kinference.shapes.sse import Event, SseReader
from kinference.shapes.translate import DESTINATIONS
from kinference.vocabulary import Api
from tests.golden.test_translation import REQUESTS, golden

WHOLE: Mapping[Api, Any] = {
    Api.OPENAI_CHAT: ChatCompletion,
    Api.OPENAI_COMPLETIONS: Completion,
    Api.OPENAI_RESPONSES: Response,
    Api.ANTHROPIC_MESSAGES: Message,
    Api.GEMINI: GenerateContentResponse,
}
EVENT: Mapping[Api, Any] = {
    **WHOLE,
    Api.OPENAI_CHAT: ChatCompletionChunk,
    Api.OPENAI_RESPONSES: ResponseStreamEvent,
    Api.ANTHROPIC_MESSAGES: RawMessageStreamEvent,
}


def validated(client: Api, kind: Any, value: Any) -> Any:
    if client is Api.GEMINI:
        return GenerateContentResponse.model_validate(value)
    validate = anthropic_validate if client is Api.ANTHROPIC_MESSAGES else openai_validate
    return validate(type_=kind, value=value)


def events_of(stream: list[str]) -> list[Event]:
    return [event for event in SseReader().feed("".join(f"{text}\n\n" for text in stream).encode()) if event.data]


@pytest.mark.parametrize("destination", DESTINATIONS)
@pytest.mark.parametrize("client", REQUESTS)
def test_the_official_client_takes_what_a_pair_of_apis_gives(client: Api, destination: Api) -> None:
    kept = json.loads(golden(client, destination).read_text(encoding="utf-8"))
    assert validated(client, WHOLE[client], kept["answer"]) is not None
    events = events_of(kept["stream"])
    for event in events:
        if event.data == b"[DONE]" or json.loads(event.data).get("type") == "ping":
            continue
        told = json.loads(event.data)
        if client is Api.OPENAI_COMPLETIONS:
            for choice in told["choices"]:  # the API writes null until the last chunk, which its SDK's type forgot
                choice["finish_reason"] = choice["finish_reason"] or "stop"
        assert validated(client, EVENT[client], told) is not None
        if client in (Api.ANTHROPIC_MESSAGES, Api.OPENAI_RESPONSES):
            assert event.event == json.loads(event.data)["type"], "the official clients go by the event's name"
