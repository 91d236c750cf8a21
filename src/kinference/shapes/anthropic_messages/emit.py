"""A request written as a Messages body. The conversation comes last, so that turn N's bytes begin turn N+1's."""

from collections.abc import Sequence
from typing import Final

import msgspec

from kinference.shapes import mcp, mcp_calls
from kinference.shapes.alternate import alternated
from kinference.shapes.claude import budget, effort_of, is_adaptive, takes_late_system
from kinference.shapes.code_execution import MESSAGES_NAME, MESSAGES_TYPE
from kinference.shapes.ir import (
    ASSISTANT,
    SYSTEM,
    USER,
    Block,
    CacheMark,
    Effort,
    File,
    FormatKind,
    Image,
    Json,
    Media,
    Reasoning,
    Refusal,
    Request,
    Sealed,
    ServerCall,
    Text,
    Tool,
    ToolCall,
    ToolMode,
    ToolResult,
    Turn,
    kinds_of,
)
from kinference.shapes.json_text import object_text
from kinference.shapes.lost import Untranslatable
from kinference.shapes.openai_chat.emit import short
from kinference.shapes.web_search import to_messages

NO_PARAMETERS: Final[Json] = {"type": "object", "properties": {}}
"""The schema of a tool without one, which every API but OpenAI's asks for."""
_NO_TOOL: Final[Json] = {"name": "noop", "input_schema": NO_PARAMETERS}
"""Stands in where the history has calls and the request no tools, which is refused otherwise."""
USER_MAX: Final = 256
_TTLS: Final = ("5m", "1h")
_ROLES: Final = {USER: "user", ASSISTANT: "assistant", SYSTEM: "system"}
_MODES: Final = {ToolMode.AUTO: "auto", ToolMode.NONE: "none", ToolMode.REQUIRED: "any"}


def emit_request(request: Request) -> Json:
    """The body."""
    turns = alternated(request, takes_system=takes_late_system(request.model))
    body: Json = {"model": request.model, "max_tokens": request.max_tokens}
    body |= _numbers(request)
    body |= _tool_settings(request, turns)
    body |= mcp.to_messages(request.mcp)
    body |= _thinking(request)
    if request.end_user:
        body["metadata"] = {"user_id": short(request.end_user, USER_MAX)}
    if request.service_tier:
        body["service_tier"] = "auto" if request.service_tier == "auto" else "standard_only"
    if request.is_streaming:
        body["stream"] = True
    if system := [_block(text) for text in request.system if not text.text.isspace()]:
        body["system"] = system
    body["messages"] = messages = [_message(turn) for turn in turns]
    if turns[-1].role is ASSISTANT:
        _without_white_space(messages[-1]["content"])
    return body


def _numbers(request: Request) -> Json:
    numbers = {name: getattr(request.sampling, name) for name in ("temperature", "top_p", "top_k")}
    body: Json = {name: value for name, value in numbers.items() if value is not None}
    if request.stop:
        body["stop_sequences"] = list(request.stop)
    return body


# --- tools ------------------------------------------------------------------------------------------


def _tool_settings(request: Request, turns: Sequence[Turn]) -> Json:
    tools = _offered(request.tools, request.tool_choice.offered if request.tool_choice else ())
    providers = [] if request.web_search is None else [to_messages(request.web_search)]
    if request.runs_code:
        providers.append({"type": MESSAGES_TYPE, "name": MESSAGES_NAME})
    providers += mcp.toolsets(request.mcp)
    choice: Json | None = None
    if not tools:
        if not kinds_of(turns) & {ToolCall, ToolResult}:
            return {"tools": providers} if providers else {}
        return {"tools": [_NO_TOOL, *providers]} | ({} if providers else {"tool_choice": {"type": "none"}})
    if request.tool_choice is not None:
        mode, names = request.tool_choice.mode, request.tool_choice.names
        is_one = bool(names) and not request.tool_choice.offered
        choice = {"type": "tool", "name": names[0]} if is_one else {"type": _MODES[mode]}
    if request.parallel_tools is False and (choice is None or choice["type"] != "none"):
        choice = {**(choice or {"type": "auto"}), "disable_parallel_tool_use": True}
    return {"tools": [*map(_tool, tools), *providers]} | ({"tool_choice": choice} if choice else {})


def _offered(tools: Sequence[Tool], names: Sequence[str]) -> Sequence[Tool]:
    """The tools, or those that alone may be called."""
    return [tool for tool in tools if tool.name in names] if names else tools


def _tool(tool: Tool) -> Json:
    described: Json = {"name": tool.name} | ({"description": tool.description} if tool.description else {})
    described["input_schema"] = tool.schema or NO_PARAMETERS
    if tool.strict:
        described["strict"] = True
    return described | _mark(tool.cache)


# --- thinking and form ------------------------------------------------------------------------------


def _thinking(request: Request) -> Json:
    body: Json = {}
    output: Json = {}
    thinking = request.thinking
    if thinking is not None and thinking.effort is Effort.NONE:
        if is_adaptive(request.model):
            body["thinking"] = {"type": "disabled"}
    elif thinking is not None and is_adaptive(request.model):
        body["thinking"] = {"type": "adaptive"} | ({"display": "summarized"} if thinking.is_shown else {})
        output["effort"] = effort_of(request)
    elif thinking is not None:
        body["thinking"] = {"type": "enabled", "budget_tokens": budget(request)}
    if request.format is not None and request.format.kind is FormatKind.JSON_SCHEMA:
        output["format"] = {"type": "json_schema", "schema": request.format.schema or {}}
    return body | ({"output_config": output} if output else {})


# --- messages ---------------------------------------------------------------------------------------


def _message(turn: Turn) -> Json:
    blocks, role = turn.blocks, _ROLES[turn.role]
    if len(blocks) == 1 and type(text := blocks[0]) is Text and text.cache is None:  # as most are
        return {"role": role, "content": [{"type": "text", "text": text.text}]}
    return {"role": role, "content": [_block(block) for block in blocks]}


def _without_white_space(content: list[Json]) -> None:
    """A beginning of the answer may not end in it."""
    if content and content[-1]["type"] == "text":
        content[-1]["text"] = content[-1]["text"].rstrip()


def _block(block: Block) -> Json:
    if type(block) is Text:  # for what most are matching takes too long
        text = {"type": "text", "text": block.text}
        return text if block.cache is None else text | _mark(block.cache)
    if type(block) is ToolCall:
        call = {"type": "tool_use", "id": block.id, "name": block.name, "input": input_of(block)}
        return call if block.cache is None else call | _mark(block.cache)
    return _result(block) if type(block) is ToolResult else _other(block)


def _other(block: Block) -> Json:
    match block:
        case Refusal():
            return {"type": "text", "text": block.text}
        case Image():
            return {"type": "image", "source": _source(block.source), **_mark(block.cache)}
        case File():
            return _document(block)
        case Reasoning():
            return {"type": "thinking", "thinking": block.text, "signature": block.signature}
        case Sealed():
            return {"type": "redacted_thinking", "data": block.data}
        case ServerCall():
            return mcp_calls.half_to_messages(block)
        case _:
            raise Untranslatable(f"{type(block).__name__.lower()}: a Messages destination cannot carry it")


def input_of(call: ToolCall) -> msgspec.Raw:
    """The arguments as an object, digit for digit. Raises Untranslatable where they are none."""
    text = object_text(call.arguments)
    if text is None:
        raise Untranslatable(f"tool call {call.id}: its arguments are not a JSON object")
    return msgspec.Raw(text)


def _result(result: ToolResult) -> Json:
    body: Json = {
        "type": "tool_result",
        "tool_use_id": result.id,
        "content": [_block(block) for block in result.content],
    }
    if result.is_error:
        body["is_error"] = True
    return body if result.cache is None else body | _mark(result.cache)


def _document(file: File) -> Json:
    if file.text:
        source: Json = {"type": "text", "media_type": "text/plain", "data": file.text}
    elif file.source.mime != "application/pdf" and (file.source.data or file.source.mime):
        raise Untranslatable("file: a Messages destination takes PDF and plain text")
    else:
        source = _source(file.source)
    body: Json = {"type": "document", "source": source} | ({"title": file.name} if file.name else {})
    return body | ({"citations": {"enabled": True}} if file.cites else {}) | _mark(file.cache)


def _source(source: Media) -> Json:
    if source.url:
        return {"type": "url", "url": source.url}
    return {"type": "base64", "media_type": source.mime, "data": source.data}


def _mark(mark: CacheMark | None) -> Json:
    if mark is None:
        return {}
    return {"cache_control": {"type": "ephemeral"} | ({"ttl": mark.ttl} if mark.ttl in _TTLS else {})}
