"""Every field of the official SDK's request types is in our tables."""

from typing import Any

import pytest
from openai.types import responses as sdk
from openai.types.responses.response_create_params import ResponseCreateParamsBase
from openai.types.responses.response_format_text_json_schema_config_param import ResponseFormatTextJSONSchemaConfigParam
from openai.types.responses.response_input_item_param import (
    AdditionalTools,
    ApplyPatchCall,
    ApplyPatchCallOutput,
    FunctionCallOutput,
    ImageGenerationCall,
    LocalShellCall,
    LocalShellCallOutput,
    McpApprovalRequest,
    McpApprovalResponse,
    McpCall,
    McpListTools,
    Message,
    ShellCall,
    ShellCallOutput,
    ToolSearchCall,
)
from openai.types.responses.tool_param import (
    CodeInterpreter,
    CodeInterpreterContainerCodeInterpreterToolAuto,
    ImageGeneration,
    LocalShell,
    Mcp,
)
from openai.types.shared_params.reasoning import Reasoning

from kinference.shapes.lost import Untranslatable
from kinference.shapes.openai_responses.fields import FIELDS
from kinference.shapes.openai_responses.request import parse_request
from tests.unit.shapes.sdk import kind_of, members, unknown

TYPES: dict[str, list[Any]] = {
    "": [ResponseCreateParamsBase],
    "message": [sdk.EasyInputMessageParam, sdk.ResponseOutputMessageParam, Message],
    "function_call": [sdk.ResponseFunctionToolCallParam],
    "custom_tool_call": [sdk.ResponseCustomToolCallParam],
    "function_call_output": [FunctionCallOutput],
    "custom_tool_call_output": [sdk.ResponseCustomToolCallOutputParam],
    "reasoning": [sdk.ResponseReasoningItemParam],
    "input_text": [sdk.ResponseInputTextParam],
    "input_image": [sdk.ResponseInputImageParam],
    "input_file": [sdk.ResponseInputFileParam],
    "output_text": [sdk.ResponseOutputTextParam],
    "refusal": [sdk.ResponseOutputRefusalParam],
    "function": [sdk.FunctionToolParam],
    "namespace": [sdk.NamespaceToolParam],
    "tool_search": [sdk.ToolSearchToolParam],
    "tool_search_call": [ToolSearchCall],
    "tool_search_output": [sdk.ResponseToolSearchOutputItemParamParam],
    "additional_tools": [AdditionalTools],
    "code_interpreter_call": [sdk.ResponseCodeInterpreterToolCallParam],
    "code_interpreter": [CodeInterpreter],
    "code_interpreter.container": [CodeInterpreterContainerCodeInterpreterToolAuto],
    "mcp": [Mcp],
    "mcp_call": [McpCall],
    "mcp_list_tools": [McpListTools],
    "custom": [sdk.CustomToolParam],
    "shell": [sdk.FunctionShellToolParam],
    "local_shell": [LocalShell],
    "apply_patch": [sdk.ApplyPatchToolParam],
    "shell_call": [ShellCall],
    "shell_call_output": [ShellCallOutput],
    "local_shell_call": [LocalShellCall],
    "local_shell_call_output": [LocalShellCallOutput],
    "apply_patch_call": [ApplyPatchCall],
    "apply_patch_call_output": [ApplyPatchCallOutput],
    "mcp_approval_request": [McpApprovalRequest],
    "mcp_approval_response": [McpApprovalResponse],
    "web_search_call": [sdk.ResponseFunctionWebSearchParam],
    "image_generation_call": [ImageGenerationCall],
    "image_generation": [ImageGeneration],
    "web_search": [sdk.WebSearchToolParam, sdk.WebSearchPreviewToolParam],
    "tool_choice": [sdk.ToolChoiceFunctionParam, sdk.ToolChoiceAllowedParam, sdk.ToolChoiceCustomParam],
    "text": [sdk.ResponseTextConfigParam],
    "text.format": [ResponseFormatTextJSONSchemaConfigParam],
    "reasoning_config": [Reasoning],
}
KINDS = sorted({kind for item in members(sdk.ResponseInputItemParam) for kind in kind_of(item)})


def test_no_field_of_the_sdk_is_unknown() -> None:
    assert unknown(FIELDS, TYPES) == []


@pytest.mark.parametrize("kind", KINDS)
def test_an_item_is_known_or_goes_nowhere_else(kind: str) -> None:
    if kind not in FIELDS:
        with pytest.raises(Untranslatable):
            parse_request({"input": [{"type": kind}]})


def test_the_sdk_was_read() -> None:
    assert {"message", "function_call", "item_reference"} <= set(KINDS)
