"""Every field of the official SDK's request types is in our tables."""

from typing import Any

import pytest
from anthropic import types as sdk
from anthropic.types import beta
from anthropic.types.message_create_params import MessageCreateParamsBase

from kinference.shapes.anthropic_messages.fields import FIELDS
from kinference.shapes.anthropic_messages.request import parse_request
from kinference.shapes.lost import Untranslatable
from tests.unit.shapes.sdk import kind_of, members, unknown

TYPES: dict[str, list[Any]] = {
    "": [MessageCreateParamsBase],
    "text": [sdk.TextBlockParam],
    "image": [sdk.ImageBlockParam],
    "document": [sdk.DocumentBlockParam],
    "search_result": [sdk.SearchResultBlockParam],
    "thinking": [sdk.ThinkingBlockParam],
    "redacted_thinking": [sdk.RedactedThinkingBlockParam],
    "tool_use": [sdk.ToolUseBlockParam],
    "tool_result": [sdk.ToolResultBlockParam],
    "tools": [sdk.ToolParam],
    "client_tool": [
        sdk.ToolBash20250124Param,
        sdk.ToolTextEditor20250124Param,
        sdk.ToolTextEditor20250429Param,
        sdk.ToolTextEditor20250728Param,
        sdk.MemoryTool20250818Param,
    ],
    "server_tool_use": [sdk.ServerToolUseBlockParam],
    "web_search_tool_result": [sdk.WebSearchToolResultBlockParam],
    "tool_reference": [sdk.ToolReferenceBlockParam],
    "tool_search_tool_result": [sdk.ToolSearchToolResultBlockParam],
    "tool_search": [sdk.ToolSearchToolBm25_20251119Param, sdk.ToolSearchToolRegex20251119Param],
    "code_execution_tool_result": [sdk.CodeExecutionToolResultBlockParam],
    "bash_code_execution_tool_result": [sdk.BashCodeExecutionToolResultBlockParam],
    "text_editor_code_execution_tool_result": [sdk.TextEditorCodeExecutionToolResultBlockParam],
    "mcp_server": [beta.BetaRequestMCPServerURLDefinitionParam],
    "mcp_toolset": [beta.BetaMCPToolsetParam],
    "mcp_tool_use": [beta.BetaMCPToolUseBlockParam],
    "mcp_tool_result": [beta.BetaRequestMCPToolResultBlockParam],
    "code_execution": [
        sdk.CodeExecutionTool20250522Param,
        sdk.CodeExecutionTool20250825Param,
        sdk.CodeExecutionTool20260120Param,
        sdk.CodeExecutionTool20260521Param,
    ],
    "web_search": [
        sdk.WebSearchTool20250305Param,
        sdk.WebSearchTool20260209Param,
        sdk.WebSearchTool20260318Param,
    ],
    "tool_choice": [sdk.ToolChoiceAutoParam, sdk.ToolChoiceAnyParam, sdk.ToolChoiceToolParam, sdk.ToolChoiceNoneParam],
    "thinking_config": [sdk.ThinkingConfigEnabledParam, sdk.ThinkingConfigAdaptiveParam],
    "output_config": [sdk.OutputConfigParam],
    "metadata": [sdk.MetadataParam],
    "cache_control": [sdk.CacheControlEphemeralParam],
    "source": [sdk.Base64ImageSourceParam, sdk.URLImageSourceParam, sdk.PlainTextSourceParam],
}
KINDS = sorted({kind for block in members(sdk.ContentBlockParam) for kind in kind_of(block)})


def test_no_field_of_the_sdk_is_unknown() -> None:
    assert unknown(FIELDS, TYPES) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_block_is_known_or_goes_nowhere_else(kind: str) -> None:
    if kind not in FIELDS:
        content = [{"type": kind}]
        with pytest.raises(Untranslatable):
            parse_request({"messages": [{"role": "user", "content": content}]})


def test_the_sdk_was_read() -> None:
    assert {"text", "tool_use", "server_tool_use"} <= set(KINDS)
