"""Every field of a Responses request, and what it is to other APIs."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kinference.shapes.concepts import Carried, Concept, Fields, Treatment

_KEPT, _MAPPED, _DROPPED = Treatment.KEPT, Treatment.MAPPED, Treatment.DROPPED
_IGNORED, _REFUSED = Treatment.IGNORED, Treatment.REFUSED

DEFAULTS: Final = MappingProxyType({"truncation": "disabled"})
"""Values that ask for nothing more than leaving the field out."""

_MARK = {"prompt_cache_breakpoint": Concept.CACHE_MARKS}
_ITEM = {"type": _KEPT, "id": _IGNORED, "status": _IGNORED}
_CALL = {**_ITEM, "call_id": _KEPT, "name": _KEPT, "async": _IGNORED, "caller": _IGNORED, "namespace": _MAPPED}
_CLIENTS: Final[Mapping[str, Carried]] = {**_ITEM, "type": _MAPPED, "call_id": _KEPT, "caller": _IGNORED}
_TOOL = {
    "type": _KEPT,
    "name": _KEPT,
    "description": _KEPT,
    "allowed_callers": _IGNORED,
    "async": _IGNORED,
    "defer_loading": _IGNORED,
}

FIELDS: Final[Fields] = {
    "": {
        "model": _MAPPED,
        "input": _KEPT,
        "instructions": _KEPT,
        "max_output_tokens": Concept.MAX_TOKENS,
        "temperature": Concept.TEMPERATURE,
        "top_p": Concept.TOP_P,
        "tools": Concept.TOOLS,
        "tool_choice": Concept.FORCED_TOOLS,
        "parallel_tool_calls": Concept.PARALLEL_TOOLS,
        "reasoning": Concept.THINKING,
        "text": Concept.JSON_SCHEMA,
        "safety_identifier": Concept.END_USER,
        "user": Concept.END_USER,
        "service_tier": Concept.SERVICE_TIER,
        "prompt_cache_key": Concept.CACHE_KEY,
        "stream": _KEPT,
        "stream_options": _IGNORED,
        "previous_response_id": _REFUSED,
        "conversation": _REFUSED,
        "prompt": _REFUSED,
        "background": _REFUSED,
        "top_logprobs": Concept.LOGPROBS,
        "image": _REFUSED,
        "context_management": _DROPPED,
        "truncation": _DROPPED,
        "max_tool_calls": _DROPPED,
        "moderation": _DROPPED,
        "access_programs": _DROPPED,
        "background_options": _IGNORED,
        "include": Concept.LOGPROBS,
        "metadata": _IGNORED,
        "store": _IGNORED,
        "prompt_cache_options": _IGNORED,
        "prompt_cache_retention": _IGNORED,
    },
    "message": {**_ITEM, "role": _KEPT, "content": _KEPT, "phase": _IGNORED},
    "function_call": {**_CALL, "arguments": _KEPT},
    "custom_tool_call": {**_CALL, "input": Concept.FREE_FORM_TOOLS},
    "function_call_output": {**_CALL, "output": _KEPT},
    "custom_tool_call_output": {**_CALL, "output": _KEPT},
    "reasoning": {**_ITEM, "summary": _KEPT, "content": _KEPT, "encrypted_content": Concept.SEALED_REASONING},
    "input_text": {"type": _KEPT, "text": _KEPT, **_MARK},
    "output_text": {"type": _KEPT, "text": _KEPT, "annotations": _IGNORED, "logprobs": _IGNORED},
    "refusal": {"type": _KEPT, "refusal": _MAPPED},
    "input_image": {
        "type": _KEPT,
        "image_url": Concept.IMAGE,
        "file_id": Concept.HELD_MEDIA,
        "detail": Concept.IMAGE_DETAIL,
        **_MARK,
    },
    "input_file": {
        "type": _KEPT,
        "file_data": Concept.FILE,
        "file_url": Concept.FILE_URL,
        "file_id": Concept.HELD_MEDIA,
        "filename": _KEPT,
        "detail": _IGNORED,
        **_MARK,
    },
    "web_search_call": {**_ITEM, "type": Concept.EARLIER_SEARCHES, "action": _MAPPED},
    "image_generation_call": {
        **_ITEM,
        "result": Concept.EARLIER_IMAGES,
        **dict.fromkeys(("action", "background", "error", "output_format", "quality", "size"), _IGNORED),
        **dict.fromkeys(("revised_prompt", "svg_usage"), _IGNORED),
    },
    "image_generation": {
        "type": Concept.MADE_IMAGES,
        **dict.fromkeys(("action", "background", "complexity", "frame_count", "frame_duration_ms"), _DROPPED),
        **dict.fromkeys(("input_fidelity", "input_image_mask", "model", "moderation"), _DROPPED),
        **dict.fromkeys(("output_compression", "output_format", "partial_images", "quality", "size", "svg"), _DROPPED),
    },
    "code_interpreter_call": {
        **_ITEM,
        "code": Concept.EARLIER_CODE,
        "outputs": Concept.EARLIER_CODE,
        "container_id": _IGNORED,
    },
    "code_interpreter": {"type": Concept.CODE_EXECUTION, "container": _MAPPED, "allowed_callers": _IGNORED},
    "code_interpreter.container": {
        "type": _KEPT,
        "file_ids": _REFUSED,
        "memory_limit": _DROPPED,
        "network_policy": _DROPPED,
    },
    "mcp": {
        "type": Concept.MCP,
        **dict.fromkeys(("server_label", "server_url", "authorization", "allowed_tools", "require_approval"), _MAPPED),
        **dict.fromkeys(("connector_id", "tunnel_id", "headers"), _REFUSED),
        **dict.fromkeys(("allowed_callers", "defer_loading", "server_description"), _IGNORED),
    },
    "mcp_call": {
        **_ITEM,
        "type": Concept.EARLIER_MCP,
        **dict.fromkeys(("name", "server_label", "arguments", "output", "error"), _MAPPED),
        "approval_request_id": _IGNORED,
    },
    "mcp_list_tools": {
        **_ITEM,
        "type": Concept.EARLIER_MCP,
        **dict.fromkeys(("server_label", "tools", "error"), _IGNORED),
    },
    "mcp_approval_request": {
        **_ITEM,
        "type": Concept.EARLIER_MCP,
        **dict.fromkeys(("server_label", "name", "arguments"), _MAPPED),
    },
    "mcp_approval_response": {
        **_ITEM,
        "type": Concept.EARLIER_MCP,
        "approval_request_id": _IGNORED,
        **dict.fromkeys(("approve", "reason"), _MAPPED),
    },
    "shell": {"type": _MAPPED, "environment": _MAPPED, "allowed_callers": _IGNORED},
    "local_shell": {"type": _MAPPED},
    "apply_patch": {"type": _MAPPED, "allowed_callers": _IGNORED},
    "shell_call": {**_CLIENTS, "action": _MAPPED, "environment": _IGNORED},
    "shell_call_output": {**_CLIENTS, "output": _MAPPED, "max_output_length": _IGNORED},
    "local_shell_call": {**_CLIENTS, "action": _MAPPED},
    "local_shell_call_output": {**_CLIENTS, "id": _KEPT, "output": _KEPT},
    "apply_patch_call": {**_CLIENTS, "operation": _MAPPED},
    "apply_patch_call_output": {**_CLIENTS, "status": Concept.TOOL_ERRORS, "output": _KEPT},
    "web_search": {
        "type": Concept.WEB_SEARCH,
        "filters": Concept.WEB_SEARCH,
        "user_location": Concept.WEB_SEARCH,
        "search_context_size": Concept.WEB_SEARCH,
        "external_web_access": _MAPPED,
        "search_content_types": _DROPPED,
    },
    "namespace": {"type": _MAPPED, "name": _MAPPED, "description": _MAPPED, "tools": Concept.TOOLS},
    "tool_search": {"type": _MAPPED, "execution": _MAPPED, "description": _KEPT, "parameters": _KEPT},
    "tool_search_call": {**_ITEM, "call_id": _KEPT, "execution": _MAPPED, "arguments": _MAPPED},
    "tool_search_output": {**_ITEM, "call_id": _KEPT, "execution": _MAPPED, "tools": Concept.TOOLS},
    "additional_tools": {**_ITEM, "role": _IGNORED, "tools": Concept.TOOLS},
    "function": {**_TOOL, "parameters": _KEPT, "strict": Concept.STRICT_TOOLS, "output_schema": _IGNORED},
    "custom": {**_TOOL, "format": Concept.GRAMMARS},
    "tool_choice": {
        "type": Concept.NO_TOOLS,
        "name": Concept.FORCED_TOOLS,
        "mode": _KEPT,
        "tools": Concept.ALLOWED_TOOLS,
    },
    "text": {"format": Concept.JSON_OBJECT, "verbosity": Concept.VERBOSITY},
    "text.format": {"type": _KEPT, "name": _KEPT, "description": _KEPT, "schema": _KEPT, "strict": _KEPT},
    "reasoning_config": {
        "effort": Concept.THINKING,
        "summary": _MAPPED,
        "generate_summary": _MAPPED,
        "mode": _IGNORED,
        "context": _IGNORED,
    },
}
