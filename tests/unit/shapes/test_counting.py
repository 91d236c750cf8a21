import json
from typing import Any

import pytest

from kinference.shapes.counting import count_path, count_request, estimate, is_count, read_count, write_count
from kinference.shapes.scan import BadBody
from kinference.shapes.translate import Way
from kinference.vocabulary import Api
from tests.unit.shapes.conversions import CHAT, CONVERSE, GEMINI, MESSAGES, RESPONSES

TOOLS = [{"name": "f", "input_schema": {"type": "object"}}]
BODY: dict[str, Any] = {"model": "m", "system": "s", "tools": TOOLS, "messages": [{"role": "user", "content": "hi"}]}


def asked(destination: Api, client: Api = MESSAGES, body: Any = BODY) -> Any:
    return json.loads(count_request(json.dumps(body).encode(), Way(client, destination, "up")))


@pytest.mark.parametrize(
    ("path", "counts"),
    [
        ("/v1/messages/count_tokens", True),
        ("/v1/messages/count_tokens?beta=true", True),
        ("/v1/responses/input_tokens/", True),
        ("/v1beta/models/m:countTokens", True),
        ("/v1/messages", False),
        ("/v1beta/models/countTokens:generateContent", False),
    ],
)
def test_the_path_tells_whether_tokens_are_counted(path: str, counts: bool) -> None:
    assert is_count(path) is counts


def test_each_api_is_asked_for_what_has_a_part_in_its_count_and_for_nothing_else() -> None:
    chat = asked(CHAT)
    assert chat.keys() == {"model", "messages", "tools"}
    assert asked(RESPONSES).keys() == {"model", "instructions", "input", "tools"}
    assert asked(MESSAGES, RESPONSES, {"model": "m", "input": "hi", "temperature": 1}).keys() == {"model", "messages"}
    gemini = asked(GEMINI)["generateContentRequest"]
    assert (gemini.keys(), gemini["model"]) == ({"model", "contents", "systemInstruction", "tools"}, "models/up")
    assert asked(CONVERSE)["input"]["converse"].keys() == {"messages", "system", "toolConfig"}


def test_vertex_counts_claudes_tokens_in_one_place_for_all_models() -> None:
    vertex = asked(Api.VERTEX_ANTHROPIC)
    assert (vertex["model"], vertex["anthropic_version"]) == ("up", "vertex-2023-10-16")
    assert "contents" in asked(Api.VERTEX_GEMINI)


@pytest.mark.parametrize(
    ("destination", "client", "path"),
    [
        (MESSAGES, CHAT, "/v1/messages/count_tokens"),
        (RESPONSES, MESSAGES, "/v1/responses/input_tokens"),
        (GEMINI, MESSAGES, "/v1beta/models/a%2Fb:countTokens"),
        (CONVERSE, MESSAGES, "/model/a%2Fb/count-tokens"),
        (Api.VERTEX_GEMINI, MESSAGES, "/publishers/google/models/a%2Fb:countTokens"),
        (Api.VERTEX_ANTHROPIC, MESSAGES, "/publishers/anthropic/models/count-tokens:rawPredict"),
        (Api.AZURE_OPENAI, RESPONSES, "/openai/v1/responses/input_tokens"),
        (Api.AZURE_OPENAI, MESSAGES, "/tokenize"),
        (CHAT, MESSAGES, "/tokenize"),
    ],
)
def test_each_api_counts_in_a_place_of_its_own(destination: Api, client: Api, path: str) -> None:
    assert count_path(destination, client, "a/b") == path


def test_a_model_cannot_lead_elsewhere() -> None:
    with pytest.raises(BadBody):
        count_path(GEMINI, MESSAGES, "../x")


@pytest.mark.parametrize(
    ("answer", "count"),
    [
        (b'{"input_tokens":0}', 0),
        (b'{"totalTokens":9,"promptTokensDetails":[]}', 9),
        (b'{"inputTokens":9}', 9),
        (b'{"count":9,"max_model_len":5,"tokens":[1]}', 9),
        (b"{}", None),
        (b"[]", None),
        (b"<html>", None),
    ],
)
def test_a_count_is_read_from_any_api(answer: bytes, count: int | None) -> None:
    assert read_count(answer) == count


def test_a_count_is_written_in_the_clients_words() -> None:
    assert write_count(MESSAGES, 3) == b'{"input_tokens":3}'
    assert write_count(RESPONSES, 3) == b'{"object":"response.input_tokens","input_tokens":3}'
    assert write_count(GEMINI, 3) == b'{"totalTokens":3}'


def test_an_estimate_is_of_all_text_and_does_not_take_pictures_for_it() -> None:
    def of(**members: Any) -> int:
        return estimate(json.dumps({"model": "m", "messages": [], **members}).encode(), MESSAGES)

    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgoA" * 9999}}
    call = {"type": "tool_use", "id": "c", "name": "f", "input": {"x": "y" * 386}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "z" * 400}, picture]}
    hi = {"role": "user", "content": "é" * 200}
    assert of(messages=[hi]) == 100
    assert of(messages=[hi], system="s" * 400) == 200
    assert of(messages=[hi], tools=[{"name": "f", "description": "d" * 398, "input_schema": {}}]) > 200
    assert of(messages=[{"role": "user", "content": [picture]}]) == 1000
    talk = [hi, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    assert of(messages=talk) == 100 + 99 + 100 + 1000
