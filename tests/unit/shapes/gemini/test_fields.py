"""Every field of the official SDK's request types is in our tables."""

from typing import Any

import pytest
from google.genai import types as sdk

from kinference.shapes.gemini.fields import FIELDS, camel

TYPES: dict[str, Any] = {
    "generationConfig": sdk.GenerationConfig,
    "content": sdk.Content,
    "part": sdk.Part,
    "functionCall": sdk.FunctionCall,
    "functionResponse": sdk.FunctionResponse,
    "tools": sdk.Tool,
    "googleSearch": sdk.GoogleSearch,
    "functionDeclarations": sdk.FunctionDeclaration,
    "toolConfig": sdk.ToolConfig,
    "functionCallingConfig": sdk.FunctionCallingConfig,
    "thinkingConfig": sdk.ThinkingConfig,
}
OF_THE_SDK_ITSELF = {"httpOptions", "shouldReturnHttpResponse", "automaticFunctionCalling"}


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_no_field_of_the_sdk_is_unknown(kind: str) -> None:
    assert camel(dict(TYPES[kind].model_fields)).keys() - FIELDS[kind].keys() == set()


def test_no_setting_of_the_sdk_is_unknown() -> None:
    settings = camel(dict(sdk.GenerateContentConfig.model_fields)).keys() - OF_THE_SDK_ITSELF
    assert settings - FIELDS[""].keys() - FIELDS["generationConfig"].keys() == set()


def test_names_in_snake_case_are_the_same() -> None:
    assert camel({"system_instruction": 1, "topP": 2, "x": 3}) == {"systemInstruction": 1, "topP": 2, "x": 3}
