import json
from typing import Any

import pytest
from google.genai.types import GenerateContentResponse
from openai._models import validate_type
from openai.types.responses import Response, ResponseStreamEvent

from kinference.shapes.ir import Image, Role, Text, Turn
from kinference.shapes.lost import Untranslatable
from kinference.shapes.made_images import made, of_chat, shown_by_user, wants_images
from kinference.vocabulary import Api
from tests.unit.shapes.conversions import (
    CHAT,
    CONVERSE,
    GEMINI,
    HI,
    MESSAGES,
    RESPONSES,
    Stream,
    answered,
    chunk,
    data,
    named,
    planned,
    sent,
    warnings,
)

PNG = "iVBORw0KGgoAAAANSUhEUg=="
URL = f"data:image/png;base64,{PNG}"
LINK = {"type": "image_url", "image_url": {"url": URL}}
BLOB = {"inlineData": {"mimeType": "image/png", "data": PNG}}
ITEM = {"id": "ig_1", "type": "image_generation_call", "status": "completed", "result": PNG}
MESSAGE = {"type": "message", "content": [{"type": "output_text", "text": "Here."}]}

WHOLE: dict[Api, Any] = {
    CHAT: {"choices": [{"message": {"content": "Here.", "images": [LINK]}, "finish_reason": "stop"}]},
    RESPONSES: {"id": "resp_1", "status": "completed", "output": [MESSAGE, ITEM]},
    GEMINI: {"candidates": [{"content": {"parts": [{"text": "Here."}, BLOB]}, "finishReason": "STOP"}]},
}
STREAMS: dict[Api, bytes] = {
    CHAT: data(chunk({"content": "Here."}), chunk({"images": [LINK]}), chunk({}, "stop"), "[DONE]"),
    RESPONSES: named(
        {"type": "response.created", "response": {"id": "resp_1", "model": "m"}},
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Here."},
        {"type": "response.output_item.done", "output_index": 1, "item": ITEM},
        {"type": "response.completed", "response": {"status": "completed", "output": []}},
    ),
    GEMINI: data(
        {"candidates": [{"content": {"parts": [{"text": "Here."}]}}]},
        {"candidates": [{"content": {"parts": [BLOB]}, "finishReason": "STOP"}]},
    ),
}
ASKING: dict[Api, Any] = {
    CHAT: {"model": "m", "messages": HI, "modalities": ["text", "image"]},
    RESPONSES: {"model": "m", "input": "hi", "tools": [{"type": "image_generation"}]},
    GEMINI: {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "generationConfig": {"responseModalities": ["TEXT", "IMAGE"]},
    },
}


def images_in(client: Api, body: Any) -> list[str]:
    match client:
        case Api.OPENAI_CHAT:
            return [image["image_url"]["url"] for image in body["choices"][0]["message"].get("images", ())]
        case Api.OPENAI_RESPONSES:
            assert validate_type(type_=Response, value=body) is not None
            return [f"data:image/png;base64,{item['result']}" for item in body["output"] if "result" in item]
        case _:
            GenerateContentResponse.model_validate(body)
            parts = body["candidates"][0]["content"]["parts"]
            blobs = [part["inlineData"] for part in parts if "inlineData" in part]
            return [f"data:{blob['mimeType']};base64,{blob['data']}" for blob in blobs]


@pytest.mark.parametrize("destination", WHOLE)
@pytest.mark.parametrize("client", WHOLE)
def test_an_image_that_was_made_is_the_clients(client: Api, destination: Api) -> None:
    assert images_in(client, answered(WHOLE[destination], client, destination)) == [URL]


def test_messages_has_no_place_for_one() -> None:
    answer = answered(WHOLE[GEMINI], MESSAGES, GEMINI)
    assert answer["content"] == [{"type": "text", "text": "Here."}]


@pytest.mark.parametrize("destination", STREAMS)
def test_a_streamed_image_is_the_clients(destination: Api) -> None:
    chat = Stream(CHAT, destination).feed(STREAMS[destination]).end().events
    deltas = [event["choices"][0]["delta"] for event in chat if event != "[DONE]" and event["choices"]]
    assert [delta["images"] for delta in deltas if "images" in delta] == [[LINK]]
    gemini = Stream(GEMINI, destination).feed(STREAMS[destination]).end().events
    parts = [part for event in gemini for part in event["candidates"][0]["content"]["parts"]]
    assert BLOB in parts


@pytest.mark.parametrize("destination", STREAMS)
def test_a_streamed_image_is_an_item_of_its_own_with_all_its_events(destination: Api) -> None:
    events = Stream(RESPONSES, destination).feed(STREAMS[destination]).end().events
    for event in events:
        assert validate_type(type_=ResponseStreamEvent, value=event) is not None  # type: ignore[arg-type] # a union
    own = [event["type"] for event in events if event.get("output_index") == 1]
    assert own == [
        "response.output_item.added",
        "response.image_generation_call.completed",
        "response.output_item.done",
    ]
    assert [item["type"] for item in events[-1]["response"]["output"]] == ["message", "image_generation_call"]


@pytest.mark.parametrize("client", ASKING)
def test_images_are_asked_for_in_the_destinations_words(client: Api) -> None:
    assert sent(ASKING[client], client, CHAT, "google/gemini-image")["modalities"] == ["image", "text"]
    assert sent(ASKING[client], client, RESPONSES)["tools"] == [{"type": "image_generation"}]
    config = sent(ASKING[client], client, GEMINI, "gemini-2.5-flash-image")["generationConfig"]
    assert config["responseModalities"] == ["TEXT", "IMAGE"]


@pytest.mark.parametrize("client", ASKING)
def test_who_makes_no_images_is_not_asked_for_one(client: Api) -> None:
    nobody = ((MESSAGES, "m"), (CONVERSE, "m"), (CHAT, "gpt-5"), (GEMINI, "gemini-2.5-pro"))
    for destination, model in nobody:
        with pytest.raises(Untranslatable):
            planned(ASKING[client], client, destination, model=model)


def test_how_an_image_is_to_be_made_is_told_as_lost() -> None:
    body = {**ASKING[RESPONSES], "tools": [{"type": "image_generation", "size": "1024x1024"}]}
    assert warnings(body, RESPONSES, GEMINI, "gemini-image") == "dropped=image_generation.size"


def test_an_answer_that_is_to_be_heard_goes_nowhere_else() -> None:
    assert wants_images(None, "m") is wants_images(["TEXT"], "m") is False
    with pytest.raises(Untranslatable, match="modalities"):
        planned({**ASKING[CHAT], "modalities": ["text", "audio"]}, CHAT, GEMINI)


HISTORY: dict[Api, Any] = {
    CHAT: {"model": "m", "messages": [*HI, {"role": "assistant", "content": "Here.", "images": [LINK]}, *HI]},
    RESPONSES: {"model": "m", "input": [*HI, {"role": "assistant", "content": "Here."}, ITEM, *HI]},
    GEMINI: {
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [{"text": "Here."}, BLOB]},
            {"role": "user", "parts": [{"text": "hi"}]},
        ]
    },
}


@pytest.mark.parametrize("client", HISTORY)
def test_an_earlier_image_stays_the_models_or_is_shown_by_the_user(client: Api) -> None:
    assert sent(HISTORY[client], client, GEMINI)["contents"][1]["parts"] == [{"text": "Here."}, BLOB]
    for destination in (CHAT, MESSAGES):
        said, shown = sent(HISTORY[client], client, destination)["messages"][1:]
        assert PNG not in json.dumps(said)
        assert PNG in json.dumps(shown)
        assert shown["content"][-1] == {"type": "text", "text": "hi"}


def test_images_wait_for_the_users_next_turn() -> None:
    image, said = made(PNG), Turn(Role.ASSISTANT, (Text("x"),))
    turns = [Turn(Role.ASSISTANT, (image,)), said, Turn(Role.USER, (Text("y"),)), Turn(Role.USER, (Text("z"),))]
    first, second, third, fourth = shown_by_user(turns)
    assert (first.blocks, second, fourth) == ((), said, turns[3])
    assert (third.blocks[1], third.blocks[-1]) == (image, Text("y"))


def test_what_is_no_image_is_passed_over() -> None:
    assert list(of_chat([LINK, 7, {"image_url": "x"}, {"image_url": {"url": "https://x/y.png"}}])) == [made(PNG)]
    assert list(of_chat(None)) == []
    assert isinstance(made("AAAA"), Image)
