import json
from typing import Any

import pytest

from kinference.shapes.ir import Text
from kinference.shapes.json_hints import JSON_HINT
from kinference.shapes.way_back import read_answer
from kinference.vocabulary import Api
from tests.unit.shapes.conversions import CHAT, CONVERSE, GEMINI, HI, MESSAGES, RESPONSES, planned, sent, warnings

OPENAIS = "gpt-4o"
LIST = {"type": "array", "items": {"type": "string"}}


def wanting(text: str = "give me a list", **config: Any) -> Any:
    """What Google's clients send who want JSON."""
    config = {"responseMimeType": "application/json", **config}
    return {"contents": [{"role": "user", "parts": [{"text": text}]}], "generationConfig": config}


def test_f5_openai_is_told_the_word_without_which_it_refuses() -> None:
    body = sent(wanting(), GEMINI, CHAT, OPENAIS)
    assert body["response_format"] == {"type": "json_object"}
    assert body["messages"][0] == {"role": "system", "content": JSON_HINT}
    assert sent(wanting(), GEMINI, RESPONSES, OPENAIS)["input"][0]["content"][0]["text"] == JSON_HINT


def test_what_says_the_word_is_not_told_it_again() -> None:
    for destination in (CHAT, RESPONSES):
        assert JSON_HINT not in json.dumps(sent(wanting("as JSON"), GEMINI, destination, OPENAIS))


def test_instructions_are_not_where_responses_looks_for_the_word() -> None:
    chat = {"model": "m", "messages": [{"role": "system", "content": "In JSON."}, *HI]}
    body = sent(chat | {"response_format": {"type": "json_object"}}, CHAT, RESPONSES, OPENAIS)
    assert body["instructions"] == "In JSON."
    assert body["input"][0]["content"][0]["text"] == JSON_HINT


@pytest.mark.parametrize("destination", [CHAT, RESPONSES])
def test_a_list_is_asked_of_openai_in_words_since_it_answers_in_objects_alone(destination: Api) -> None:
    asked = wanting(responseSchema={"type": "ARRAY", "items": {"type": "STRING"}})
    body = sent(asked, GEMINI, destination, OPENAIS)
    assert "response_format" not in body
    assert "format" not in body.get("text", {})
    told = body["messages"][0]["content"] if destination is CHAT else body["instructions"]
    assert json.dumps(LIST, separators=(",", ":")) in told
    assert warnings(asked, GEMINI, destination, OPENAIS) == "clamped=generationConfig.responseSchema:hint"
    assert planned(asked, GEMINI, destination, model=OPENAIS).back.is_bare_json


def test_servers_of_others_models_and_claude_are_held_to_a_list() -> None:
    asked = wanting(responseJsonSchema=LIST)
    assert sent(asked, GEMINI, CHAT, "llama")["response_format"]["json_schema"]["schema"] == LIST
    assert sent(asked, GEMINI, MESSAGES)["output_config"]["format"]["schema"] == LIST


def test_a_name_of_a_schema_is_one_that_openai_takes() -> None:
    form = {"type": "json_schema", "json_schema": {"name": "My answer!", "schema": {"type": "object"}}}
    body = sent({"model": "m", "messages": HI, "response_format": form}, CHAT, RESPONSES, OPENAIS)
    assert body["text"]["format"]["name"].replace("_", "").isalnum()


@pytest.mark.parametrize(("model", "is_held"), [("claude-3-7-sonnet", False), ("claude-sonnet-4-5", True), ("m", True)])
@pytest.mark.parametrize("destination", [MESSAGES, CONVERSE])
def test_claudes_older_models_are_asked_for_a_schema_in_words(destination: Api, model: str, is_held: bool) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object", "properties": {}}}}
    body = {"model": "m", "max_tokens": 9, "messages": HI, "response_format": form}
    made = sent(body, CHAT, destination, model)
    assert bool({"output_config", "outputConfig"} & made.keys()) == is_held
    assert ("obeys this schema" in json.dumps(made)) is not is_held
    assert planned(body, CHAT, destination, model=model).back.is_bare_json is not is_held
    assert ("hint" in warnings(body, CHAT, destination, model)) is not is_held


def test_so_they_are_for_one_word_of_some() -> None:
    config: Any = {"responseMimeType": "text/x.enum", "responseSchema": {"type": "STRING", "enum": ["a", "b"]}}
    back = planned(wanting(**config), GEMINI, MESSAGES, model="claude-3-7-sonnet").back
    assert (back.is_bare_json, back.is_choice) == (True, True)
    told = {
        "id": "m",
        "content": [{"type": "text", "text": '```json\n{"choice": "a"}\n```'}],
        "stop_reason": "end_turn",
    }
    assert read_answer(back, json.dumps(told).encode()).blocks == (Text("a"),)
