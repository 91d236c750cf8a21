"""Every field of the official SDK's request types is in our tables."""

from typing import Any

from openai.types import chat as sdk
from openai.types.chat.completion_create_params import CompletionCreateParamsBase, WebSearchOptions
from openai.types.shared_params import ResponseFormatJSONSchema
from openai.types.shared_params.function_definition import FunctionDefinition

from kinference.shapes.openai_chat.fields import FIELDS
from tests.unit.shapes.sdk import kind_of, members, unknown

TYPES: dict[str, list[Any]] = {
    "": [CompletionCreateParamsBase],
    "system": [sdk.ChatCompletionSystemMessageParam, sdk.ChatCompletionDeveloperMessageParam],
    "user": [sdk.ChatCompletionUserMessageParam],
    "assistant": [sdk.ChatCompletionAssistantMessageParam],
    "tool": [sdk.ChatCompletionToolMessageParam],
    "function": [sdk.ChatCompletionFunctionMessageParam],
    "text": [sdk.ChatCompletionContentPartTextParam],
    "refusal": [sdk.ChatCompletionContentPartRefusalParam],
    "image_url": [sdk.ChatCompletionContentPartImageParam],
    "input_audio": [sdk.ChatCompletionContentPartInputAudioParam],
    "tool_call": [sdk.ChatCompletionMessageFunctionToolCallParam, sdk.ChatCompletionMessageCustomToolCallParam],
    "tools": [sdk.ChatCompletionFunctionToolParam, sdk.ChatCompletionCustomToolParam],
    "tools.function": [FunctionDefinition],
    "response_format": [ResponseFormatJSONSchema],
    "web_search_options": [WebSearchOptions],
    "stream_options": [sdk.ChatCompletionStreamOptionsParam],
    "tool_choice": [
        sdk.ChatCompletionNamedToolChoiceParam,
        sdk.ChatCompletionNamedToolChoiceCustomParam,
        sdk.ChatCompletionAllowedToolChoiceParam,
    ],
}


def test_no_field_of_the_sdk_is_unknown() -> None:
    assert unknown(FIELDS, TYPES) == []


def test_no_kind_of_part_is_unknown() -> None:
    kinds = {kind for part in members(sdk.ChatCompletionContentPartParam) for kind in kind_of(part)}
    assert kinds == {"text", "image_url", "input_audio", "file"}
    assert kinds <= FIELDS.keys()
