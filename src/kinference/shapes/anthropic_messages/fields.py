"""Every field of a Messages request, and what it is to other APIs."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kinference.shapes.concepts import Carried, Concept, Fields, Treatment

_KEPT, _MAPPED, _DROPPED = Treatment.KEPT, Treatment.MAPPED, Treatment.DROPPED
_IGNORED, _REFUSED = Treatment.IGNORED, Treatment.REFUSED

DEFAULTS: Final = MappingProxyType({"speed": "standard"})
"""Values that ask for nothing more than leaving the field out."""

_MARK = {"cache_control": Concept.CACHE_MARKS}
_SEARCHED: Final[Mapping[str, Carried]] = {
    "type": Concept.EARLIER_SEARCHES,
    "caller": _IGNORED,
    "cache_control": _IGNORED,
}

_CALLED: Final[Mapping[str, Carried]] = {"type": Concept.EARLIER_MCP, "cache_control": _IGNORED}

_RAN: Final[Mapping[str, Carried]] = {"type": Concept.EARLIER_CODE, "cache_control": _IGNORED}

FIELDS: Final[Fields] = {
    "": {
        "model": _MAPPED,
        "messages": _KEPT,
        "system": _KEPT,
        "max_tokens": Concept.MAX_TOKENS,
        "temperature": Concept.TEMPERATURE,
        "top_p": Concept.TOP_P,
        "top_k": Concept.TOP_K,
        "stop_sequences": Concept.STOP,
        "stream": _KEPT,
        "tools": Concept.TOOLS,
        "tool_choice": Concept.FORCED_TOOLS,
        "thinking": Concept.THINKING,
        "output_config": Concept.JSON_SCHEMA,
        "output_format": Concept.JSON_SCHEMA,
        "metadata": Concept.END_USER,
        "service_tier": Concept.SERVICE_TIER,
        "cache_control": _IGNORED,
        "anthropic_version": _IGNORED,
        "inference_geo": _DROPPED,
        "mcp_servers": Concept.MCP,
        "speed": _DROPPED,
        "container": _REFUSED,
        "context_management": _DROPPED,
        "diagnostics": _IGNORED,
        "user_profile_id": _IGNORED,
        "workspace_id": _IGNORED,
    },
    "user": {"role": _KEPT, "content": _KEPT},
    "assistant": {"role": _KEPT, "content": _KEPT},
    "system": {"role": Concept.LATE_SYSTEM, "content": _KEPT},
    "text": {"type": _KEPT, "text": _KEPT, "citations": _IGNORED, **_MARK},
    "image": {"type": _KEPT, "source": Concept.IMAGE, "transformations": Concept.IMAGE_DETAIL, **_MARK},
    "document": {
        "type": _KEPT,
        "source": Concept.FILE,
        "title": _KEPT,
        "context": _MAPPED,
        "citations": Concept.CITATIONS,
        **_MARK,
    },
    "search_result": {
        "type": _MAPPED,
        "source": _MAPPED,
        "title": _MAPPED,
        "content": _MAPPED,
        "citations": Concept.CITATIONS,
        **_MARK,
    },
    "thinking": {"type": _KEPT, "thinking": _KEPT, "signature": Concept.SEALED_REASONING},
    "redacted_thinking": {"type": _KEPT, "data": Concept.SEALED_REASONING},
    "tool_use": {
        "type": _KEPT,
        "id": _KEPT,
        "name": _KEPT,
        "input": _KEPT,
        "caller": _IGNORED,
        "toolset_name": _IGNORED,
        **_MARK,
    },
    "tool_result": {
        "type": _KEPT,
        "tool_use_id": _KEPT,
        "content": _KEPT,
        "is_error": Concept.TOOL_ERRORS,
        "toolset_name": _IGNORED,
        **_MARK,
    },
    "tools": {
        "type": _KEPT,
        "name": _KEPT,
        "description": _KEPT,
        "input_schema": _KEPT,
        "strict": Concept.STRICT_TOOLS,
        "allowed_callers": _IGNORED,
        "defer_loading": _IGNORED,
        "eager_input_streaming": _IGNORED,
        "input_examples": _IGNORED,
        **_MARK,
    },
    "client_tool": {
        "type": _MAPPED,
        "name": _KEPT,
        "strict": Concept.STRICT_TOOLS,
        "max_characters": _IGNORED,  # which the client keeps to itself
        **dict.fromkeys(("allowed_callers", "defer_loading", "input_examples"), _IGNORED),
        **_MARK,
    },
    "server_tool_use": {**_SEARCHED, "id": _IGNORED, "name": _MAPPED, "input": _MAPPED},
    "web_search_tool_result": {**_SEARCHED, "tool_use_id": _IGNORED, "content": _MAPPED},
    "tool_reference": {"type": _MAPPED, "tool_name": _MAPPED, "cache_control": _IGNORED},
    "tool_search_tool_result": {**_SEARCHED, "tool_use_id": _IGNORED, "content": _IGNORED},
    "tool_search": {
        "type": _MAPPED,
        "name": _IGNORED,
        **dict.fromkeys(("allowed_callers", "cache_control", "defer_loading", "strict"), _IGNORED),
    },
    "code_execution_tool_result": {**_RAN, "tool_use_id": _IGNORED, "content": Concept.EARLIER_CODE},
    "bash_code_execution_tool_result": {**_RAN, "tool_use_id": _IGNORED, "content": Concept.EARLIER_CODE},
    "text_editor_code_execution_tool_result": {**_RAN, "tool_use_id": _IGNORED, "content": Concept.EARLIER_CODE},
    "mcp_server": {
        "type": _KEPT,
        "name": _KEPT,
        "url": _KEPT,
        "authorization_token": _KEPT,
        "tool_configuration": _MAPPED,
    },
    "mcp_toolset": {
        "type": Concept.MCP,
        "mcp_server_name": _KEPT,
        "default_config": _MAPPED,
        "configs": _MAPPED,
        "tools": _IGNORED,  # as its client last saw them: the server says itself which it has
        "cache_control": _IGNORED,
    },
    "mcp_tool_use": {**_CALLED, **dict.fromkeys(("id", "name", "server_name", "input"), _MAPPED)},
    "mcp_tool_listing": {"type": _IGNORED, "mcp_server_name": _IGNORED, "tools": _IGNORED},
    "mcp_tool_result": {**_CALLED, **dict.fromkeys(("tool_use_id", "content", "is_error"), _MAPPED)},
    "code_execution": {
        "type": Concept.CODE_EXECUTION,
        "name": _KEPT,
        **dict.fromkeys(("allowed_callers", "cache_control", "defer_loading", "strict"), _IGNORED),
    },
    "web_search": {
        "type": Concept.WEB_SEARCH,
        "name": _KEPT,
        "allowed_domains": Concept.WEB_SEARCH,
        "blocked_domains": Concept.WEB_SEARCH,
        "max_uses": Concept.WEB_SEARCH,
        "user_location": Concept.WEB_SEARCH,
        "allowed_callers": _IGNORED,
        "defer_loading": _IGNORED,
        "strict": _IGNORED,
        "response_inclusion": _IGNORED,
        "cache_control": _IGNORED,
    },
    "tool_choice": {
        "type": Concept.NO_TOOLS,
        "name": Concept.FORCED_TOOLS,
        "disable_parallel_tool_use": Concept.PARALLEL_TOOLS,
    },
    "thinking_config": {"type": _KEPT, "budget_tokens": Concept.THINKING, "display": _MAPPED},
    "output_config": {"effort": Concept.THINKING, "format": Concept.JSON_SCHEMA, "task_budget": _DROPPED},
    "output_format": {"type": _KEPT, "schema": _KEPT},
    "metadata": {"user_id": Concept.END_USER},
    "cache_control": {"type": _KEPT, "ttl": _MAPPED},
    "source": {
        "type": _KEPT,
        "media_type": _KEPT,
        "data": _KEPT,
        "url": Concept.IMAGE_URL,
        "file_id": Concept.HELD_MEDIA,
        "content": _MAPPED,
    },
}
