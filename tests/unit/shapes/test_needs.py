"""Which capabilities a body asks for."""

import json
from typing import Any

import msgspec
import pytest

from kinference.shapes.fields import Body
from kinference.shapes.needs import needs_of
from kinference.vocabulary import Api, Need

HELLO = [{"role": "user", "content": "hello"}]
CHAT, COMPLETIONS = Api.OPENAI_CHAT, Api.OPENAI_COMPLETIONS
MESSAGES, RESPONSES = Api.ANTHROPIC_MESSAGES, Api.OPENAI_RESPONSES


def needs(api: Api, **fields: Any) -> set[Need]:
    text = json.dumps(fields).encode()
    conversation = json.dumps(fields.get("messages", fields.get("input"))).encode()
    return set(needs_of(api, msgspec.json.decode(text, type=Body), conversation))


def part(**fields: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [fields]}]


IMAGE = {"type": "image", "source": {"type": "base64", "data": ""}}


@pytest.mark.parametrize(
    ("api", "fields", "need"),
    [
        (CHAT, {"messages": part(type="image_url", image_url={"url": "x"})}, Need.VISION),
        (CHAT, {"messages": part(type="video_url", video_url={"url": "x"})}, Need.VISION),
        (CHAT, {"messages": part(type="input_audio", input_audio={})}, Need.AUDIO),
        (CHAT, {"messages": HELLO, "modalities": ["text", "audio"]}, Need.AUDIO),
        (CHAT, {"messages": HELLO, "tools": [{"type": "function"}]}, Need.TOOLS),
        (CHAT, {"messages": HELLO, "functions": [{"name": "f"}]}, Need.TOOLS),
        (CHAT, {"messages": HELLO, "logprobs": True}, Need.LOGPROBS),
        (CHAT, {"messages": HELLO, "top_logprobs": 2}, Need.LOGPROBS),
        (CHAT, {"messages": HELLO, "response_format": {"type": "json_object"}}, Need.STRUCTURED_OUTPUT),
        (CHAT, {"messages": HELLO, "guided_regex": "a+"}, Need.STRUCTURED_OUTPUT),
        (COMPLETIONS, {"prompt": "x", "logprobs": 0}, Need.LOGPROBS),
        (MESSAGES, {"messages": part(**IMAGE)}, Need.VISION),
        (MESSAGES, {"messages": part(type="tool_result", content=[IMAGE])}, Need.VISION),
        (
            MESSAGES,
            {"messages": HELLO, "output_config": {"format": {"type": "json_schema"}}},
            Need.STRUCTURED_OUTPUT,
        ),
        (RESPONSES, {"input": part(type="input_image", image_url="x")}, Need.VISION),
        (RESPONSES, {"input": "x", "text": {"format": {"type": "json_schema"}}}, Need.STRUCTURED_OUTPUT),
        (RESPONSES, {"input": "x", "include": ["message.output_text.logprobs"]}, Need.LOGPROBS),
    ],
)
def test_a_need_is_seen(api: Api, fields: dict[str, Any], need: Need) -> None:
    assert needs(api, **fields) == {need}


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": [{"role": "user", "content": '{"type": "image_url"} and "type": "input_audio"'}]},
        {"messages": part(type="text", text="image_url")},
        {"messages": HELLO, "tools": []},
        {"messages": HELLO, "logprobs": False, "top_logprobs": 0},
        {"messages": HELLO, "response_format": {"type": "text"}, "text": {"format": {"type": "text"}}},
        {"messages": HELLO, "logprobs": None, "modalities": ["text"]},
    ],
)
def test_text_about_a_need_is_no_need(fields: dict[str, Any]) -> None:
    assert needs(CHAT, **fields) == set()


def test_needs_that_no_translation_carries() -> None:
    assert needs(CHAT, messages=HELLO, n=2) == {Need.SEVERAL_ANSWERS}
    assert needs(CHAT, messages=HELLO, n=1, logit_bias={}) == set()
    assert needs(CHAT, messages=HELLO, logit_bias={"1": 1}) == {Need.LOGIT_BIAS}
    assert needs(COMPLETIONS, prompt=[1, 2]) == needs(COMPLETIONS, prompt=[[1]]) == {Need.TOKEN_PROMPT}
    assert needs(COMPLETIONS, prompt=["1"]) == set()


def test_geminis_media_are_told_by_their_type() -> None:
    def inline(mime: str) -> list[dict[str, Any]]:
        return [{"parts": [{"inlineData": {"mimeType": mime, "data": ""}}]}]

    assert needs(Api.GEMINI, messages=inline("image/png")) == {Need.VISION}
    assert needs(Api.GEMINI, messages=inline("audio/wav")) == {Need.AUDIO}
    assert needs(Api.GEMINI, messages=inline("text/plain")) == set()


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        ({"candidateCount": 1, "responseLogprobs": False, "responseMimeType": "text/plain"}, set()),
        ({"candidateCount": 2}, {Need.SEVERAL_ANSWERS}),
        ({"responseLogprobs": True}, {Need.LOGPROBS}),
        ({"responseMimeType": "application/json"}, {Need.STRUCTURED_OUTPUT}),
        ({"responseSchema": {"type": "OBJECT"}}, {Need.STRUCTURED_OUTPUT}),
        ({"responseJsonSchema": {"type": "object"}}, {Need.STRUCTURED_OUTPUT}),
    ],
)
def test_geminis_configuration_has_needs_as_well(config: dict[str, object], wanted: set[Need]) -> None:
    assert needs(Api.GEMINI, contents=[], generationConfig=config) == wanted
