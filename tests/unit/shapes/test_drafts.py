import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from kinference.shapes.drafts import mended
from tests.unit.shapes.conversions import CHAT, CONVERSE, GEMINI, HI, MESSAGES, RESPONSES, sent

GOOD = {
    "type": "object",
    "properties": {
        "a": {"type": "string", "enum": ["x"], "default": None},
        "b": {"type": "array", "items": {"$ref": "#/$defs/b"}, "minItems": 1},
        "c": {"anyOf": [{"type": "null"}, {"const": None}], "description": "d"},
        "e": True,
    },
    "$defs": {"b": {"type": ["integer", "null"], "exclusiveMinimum": 1}},
    "required": ["a"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("is_whole", [False, True])
def test_a_schema_of_the_present_draft_stays_the_very_same(is_whole: bool) -> None:
    assert mended(GOOD, is_whole=is_whole) is GOOD


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"required": ["a", "a", 1]}, {"required": ["a"]}),
        ({"required": None, "properties": None, "enum": None}, {}),
        ({"enum": []}, {}),
        ({"default": None, "const": None}, {"default": None, "const": None}),
        ({"minimum": 0, "exclusiveMinimum": True}, {"exclusiveMinimum": 0}),
        ({"maximum": 9, "exclusiveMaximum": False}, {"maximum": 9}),
        ({"items": [{"enum": []}, True], "additionalItems": False}, {"items": False, "prefixItems": [{}, True]}),
        ({"items": [{"type": "string"}]}, {"prefixItems": [{"type": "string"}]}),
        ({"anyOf": [{"enum": []}, {"type": "null"}]}, {"anyOf": [{}, {"type": "null"}]}),
        ({"not": {"required": True}, "items": {"properties": []}}, {"not": {}, "items": {}}),
        ({"anyOf": {"type": "null"}}, {}),
    ],
)
def test_what_older_drafts_wrote_is_said_anew(old: Any, new: Any) -> None:
    assert mended({"type": "object", "properties": {"a": old}}, is_whole=False)["properties"]["a"] == new
    Draft202012Validator.check_schema(mended(old, is_whole=False))


def test_a_member_that_says_that_it_is_required_is_so() -> None:
    old = {"type": "object", "properties": {"a": {"required": True}, "b": {"required": False}}, "required": ["c"]}
    assert mended(old, is_whole=False) == {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["c", "a"]}


def test_arrays_say_what_they_hold_where_that_is_asked_for() -> None:
    old: Any = {
        "type": "object",
        "properties": {"a": {"type": "array"}, "b": {"type": ["array", "null"], "items": None}},
    }
    new = mended(old, is_whole=True)["properties"]
    assert [each["items"] for each in new.values()] == [{}, {}]
    assert mended({"type": "object"}, is_whole=True) == {"type": "object", "properties": {}}
    assert mended({"type": "object"}, is_whole=False) == {"type": "object"}


BAD = {"type": "object", "properties": {"a": {"type": "array", "items": [{"type": "string"}]}}, "required": ["a", "a"]}


@pytest.mark.parametrize("destination", [RESPONSES, MESSAGES, GEMINI, CONVERSE])
def test_every_provider_gets_tools_that_it_can_check(destination: Any) -> None:
    with pytest.raises(SchemaError):
        Draft202012Validator.check_schema(BAD)
    tool = {"type": "function", "function": {"name": "f", "parameters": BAD}}
    told = json.dumps(sent({"model": "m", "messages": HI, "tools": [tool]}, CHAT, destination))
    assert '"prefixItems"' in told
    assert '"required": ["a"]' in told


def test_the_items_of_a_usual_array_are_mended_within_it() -> None:
    array = {"title": "t", "type": "array", "items": {"type": "array", "items": {"enum": []}}, "description": "d"}
    fixed = mended(array, is_whole=False)
    assert list(fixed) == list(array)
    assert fixed == array | {"items": {"type": "array", "items": {}}}
    assert mended({"type": "array", "items": {"type": "string"}, "default": None}, is_whole=True)["default"] is None
    assert "pattern" not in mended({"type": "string", "pattern": None}, is_whole=False)


def test_arrays_in_arrays_are_looked_at_once_each() -> None:
    deep: Any = {"enum": []}
    for _ in range(100):
        deep = {"type": "array", "items": deep}
    assert mended(deep, is_whole=True) != deep
