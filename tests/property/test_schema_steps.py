"""A schema costs steps as many as it has bytes: hostile ones repeat what is cheap to write and dear to look at.

Each of these takes minutes where every part is put together with every other, and ends by pytest's limit.
"""

from typing import Any

import pytest

from kinference.shapes.translate import emit
from tests.unit.shapes.conversions import CHAT, HI, MESSAGES, RESPONSES, planned

NAMES = [f"p{number}" for number in range(50_000)]
SCHEMAS: dict[str, Any] = {
    "alternatives that require the same": {"anyOf": [{"required": ["a"]} for _ in NAMES]},
    "alternatives of a member each": {"allOf": [{"properties": {name: {}}} for name in NAMES]},
    "alternatives that are one definition": {
        "oneOf": [{"$ref": "#/$defs/all"} for _ in NAMES],
        "$defs": {"all": {"properties": {name: {} for name in NAMES}}},
    },
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_alternatives_are_put_together_in_one_pass(name: str) -> None:
    function = {"name": "f", "parameters": {"type": "object"} | SCHEMAS[name]}
    body = {"model": "m", "max_tokens": 9, "messages": HI, "tools": [{"type": "function", "function": function}]}
    assert emit(planned(body, CHAT, MESSAGES))


def test_an_exact_object_is_known_for_one_in_one_pass() -> None:
    strings = {name: {"type": "string"} for name in NAMES}
    exact = {"properties": strings, "required": NAMES, "additionalProperties": False}
    tool = {"type": "function", "name": "f", "strict": True, "parameters": {"type": "object"} | exact}
    assert emit(planned({"model": "m", "input": "hi", "tools": [tool]}, RESPONSES, CHAT))
