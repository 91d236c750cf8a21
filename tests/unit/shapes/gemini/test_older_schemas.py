import json
from typing import Any

import pytest

from kinference.shapes.gemini.older_schemas import older
from tests.unit.shapes.conversions import CHAT, GEMINI, HI, sent, warnings

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city", "zip"]}


def of(schema: Any) -> Any:
    """How a member of that schema is written."""
    return older({"type": "object", "properties": {"a": schema}})["properties"]["a"]


@pytest.mark.parametrize(
    ("model", "is_older"),
    [("gemini-1.5-pro", True), ("gemini-2.0-flash-001", True), ("gemini-2.5-flash", False), ("gemini-latest", False)],
)
def test_models_before_two_and_a_half_get_googles_own_schemas(model: str, is_older: bool) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": CITY}}
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": CITY}}
    made = sent({"model": "m", "messages": HI, "tools": [tool], "response_format": form}, CHAT, GEMINI, model)
    (function,), config = made["tools"][0]["functionDeclarations"], made["generationConfig"]
    if is_older:
        written = {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}, "required": ["city"]}
        assert function == {"name": "f", "parameters": written}
        assert config == {"responseMimeType": "application/json", "responseSchema": written}
    else:
        assert function == {"name": "f", "parametersJsonSchema": CITY}
        assert config == {"responseMimeType": "application/json", "responseJsonSchema": CITY}


def test_a_tool_without_parameters_has_none() -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    made = sent({"model": "m", "messages": HI, "tools": [tool]}, CHAT, GEMINI, "gemini-2.0-flash")
    assert made["tools"] == [{"functionDeclarations": [{"name": "f"}]}]


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({"type": ["string", "null"], "description": "d"}, {"type": "STRING", "nullable": True, "description": "d"}),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, {"type": "INTEGER", "nullable": True}),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]}),
        ({"type": "array"}, {"type": "ARRAY", "items": {"type": "STRING"}}),
        ({"type": "array", "items": {"type": "number"}}, {"type": "ARRAY", "items": {"type": "NUMBER"}}),
        ({"enum": ["x", "y"]}, {"type": "STRING", "enum": ["x", "y"]}),
        ({"type": "integer", "enum": [1, 2]}, {"type": "INTEGER", "description": "(one of [1,2])"}),
        ({"type": "string", "format": "uri"}, {"type": "STRING"}),
        ({"type": "string", "format": "date-time"}, {"type": "STRING", "format": "date-time"}),
        ({"type": "object", "additionalProperties": False}, {"type": "OBJECT"}),
        ({"type": "string", "enum": [""]}, {"type": "STRING", "description": '(one of [""])'}),
        (True, {"type": "STRING"}),
        ({"$ref": "#/$defs/none"}, {"type": "STRING"}),
    ],
)
def test_each_keyword_in_googles_words(schema: Any, written: Any) -> None:
    assert of(schema) == written


def test_what_a_name_stands_for_is_put_in_its_place_and_what_holds_itself_ends() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "n": {"type": "integer"}}}
    assert older({"$ref": "#/$defs/node", "$defs": {"node": node}}) == {
        "type": "OBJECT",
        "properties": {"next": {"type": "OBJECT"}, "n": {"type": "INTEGER"}},
    }


def test_what_an_older_model_is_not_held_to_is_told() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "object", "additionalProperties": {"type": "string"}}}}
    body: dict[str, Any] = {"model": "m", "messages": HI}
    body["response_format"] = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    told = "clamped=response_format:additionalProperties"
    assert warnings(body, CHAT, GEMINI, "gemini-2.0-flash") == told
    assert warnings(body, CHAT, GEMINI, "gemini-2.5-flash") == ""


def test_names_within_names_do_not_grow_without_end() -> None:
    def both(at: int) -> Any:
        return {"type": "object", "properties": {side: {"$ref": f"#/$defs/d{at + 1}"} for side in "ab"}}

    schema = {"$ref": "#/$defs/d0", "$defs": {f"d{at}": both(at) for at in range(2000)}}
    assert len(json.dumps(older(schema))) < 1_000_000
