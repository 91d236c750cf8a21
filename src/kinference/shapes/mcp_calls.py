"""Calls of MCP servers' tools that a provider made itself: in answers and in the history, in every API's form."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from kinference.shapes.ir import Block, Json, McpServer, ServerCall, ServerTools, Text, Turn
from kinference.shapes.json_text import as_object, dumps
from kinference.shapes.tooling import safe_id
from kinference.vocabulary import Api

RESPONSES_CALL: Final = "mcp_call"
RESPONSES_LISTING: Final = "mcp_list_tools"
RESPONSES_ASKING: Final = "mcp_approval_request"
RESPONSES_ANSWER: Final = "mcp_approval_response"
MESSAGES_CALL: Final = "mcp_tool_use"
MESSAGES_RESULT: Final = "mcp_tool_result"
MESSAGES_LISTING: Final = "mcp_tool_listing"
_PREFIX: Final = "mcp_"
"""How OpenAI's ids of them begin, and have to."""
_NAMES: Final = ("name", "description", "input_schema")


# --- Messages ---------------------------------------------------------------------------------------


def of_messages(block: Json) -> ServerCall | ServerTools | None:
    """Of a block that calls a server, has what came of it, or lists what a server offers; None of any other."""
    match block.get("type"):
        case "mcp_tool_use":
            given = dumps(block.get("input") or {}).decode()
            return ServerCall(_text(block, "id"), _text(block, "server_name"), _text(block, "name"), given)
        case "mcp_tool_result":
            call, said = _text(block, "tool_use_id"), _said(block.get("content"))
            return ServerCall(call, output=said, has_failed=block.get("is_error") is True)
        case "mcp_tool_listing":
            return ServerTools(_text(block, "mcp_server_name"), tuple(_offered(block.get("tools"))))
        case _:
            return None


def to_messages(call: ServerCall, place: str) -> tuple[Json, Json]:
    """The blocks of Messages: the call, and what came of it. `place` tells a call without an id from every other."""
    call = replace(call, id=safe_id(call.id or f"mcptoolu_{place}"))
    return half_to_messages(call), half_to_messages(replace(call, name=""))


def half_to_messages(call: ServerCall) -> Json:
    """The block of Messages of what was called, or of what came of it."""
    if call.name:
        given = as_object(call.arguments or "{}")
        block = {"type": MESSAGES_CALL, "id": safe_id(call.id), "name": call.name, "server_name": call.server}
        return block | {"input": {"_raw": call.arguments} if given is None else given}
    content = [{"type": "text", "text": call.output}] if call.output else []
    result = {"type": MESSAGES_RESULT, "tool_use_id": safe_id(call.id)}
    return result | {"is_error": call.has_failed, "content": content}


# --- Responses --------------------------------------------------------------------------------------


def of_responses(item: Json) -> ServerCall | ServerTools | None:
    """Of an item that called a server, or lists what one offers; None of any other."""
    if item.get("type") == RESPONSES_LISTING:
        return ServerTools(_text(item, "server_label"), tuple(_offered(item.get("tools"))))
    return call_of_responses(item) if item.get("type") == RESPONSES_CALL else None


def call_of_responses(item: Json) -> ServerCall:
    """Of an item that called a server."""
    output, error = _text(item, "output"), item.get("error")
    if error:
        output = _failure(error)
    has_failed = bool(error) or item.get("status") == "failed"
    server, name = _text(item, "server_label"), _text(item, "name")
    return ServerCall(_text(item, "id"), server, name, _text(item, "arguments"), output, has_failed)


def to_responses(item_id: str, call: ServerCall, status: str = "") -> Json:
    """An item that called a server; with a status, one of which nothing has come yet."""
    item: Json = {"id": item_id, "type": RESPONSES_CALL, "server_label": call.server, "name": call.name}
    if status:
        return item | {"arguments": "", "output": None, "error": None, "status": status}
    failed = {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": call.output}]}
    return item | {
        "arguments": call.arguments or "{}",
        "output": None if call.has_failed else call.output,
        "error": failed if call.has_failed else None,
        "status": "failed" if call.has_failed else "completed",
    }


def item_id(call: ServerCall, suffix: str) -> str:
    """The id of the item of a call: its own, in the form that OpenAI asks for."""
    given = call.id or suffix
    return safe_id(given if given.startswith(_PREFIX) else f"{_PREFIX}{given}")


def listing_to_responses(item_id: str, found: ServerTools) -> Json:
    """An item that lists what a server offers."""
    item = {"id": item_id, "type": RESPONSES_LISTING, "server_label": found.server, "tools": list(found.tools)}
    return item | {"error": None}


# --- the history ------------------------------------------------------------------------------------


def placed(turns: Iterable[Turn], servers: Sequence[McpServer], target: Api) -> Iterator[Turn]:
    """The turns with each call in the target's form where it has one and the server is still offered, and in words
    where not. What servers offer is asked of them anew.
    """
    has_form = target in (Api.OPENAI_RESPONSES, Api.ANTHROPIC_MESSAGES)
    offered = frozenset(server.name for server in servers) if has_form else frozenset[str]()
    for turn in turns:
        if not any(type(block) is ServerCall or type(block) is ServerTools for block in turn.blocks):
            yield turn
        elif blocks := tuple(_placed(turn.blocks, offered, is_halved=target is Api.ANTHROPIC_MESSAGES)):
            yield replace(turn, blocks=blocks)


def _placed(blocks: Sequence[Block], offered: frozenset[str], *, is_halved: bool) -> Iterator[Block]:
    for block in _whole(blocks):
        if type(block) is not ServerCall:
            if type(block) is not ServerTools:
                yield block
        elif block.server not in offered or not block.name:
            yield _in_words(block)
        elif is_halved:
            yield replace(block, output="", has_failed=False)
            yield ServerCall(block.id, output=block.output, has_failed=block.has_failed)
        else:
            yield block


def _whole(blocks: Sequence[Block]) -> Iterator[Block]:
    """The blocks with each call and what came of it as one, where the call is."""
    results = {block.id: block for block in blocks if type(block) is ServerCall and not block.name}
    called = {block.id for block in blocks if type(block) is ServerCall and block.name}
    for block in blocks:
        if type(block) is not ServerCall:
            yield block
        elif block.name and (result := results.get(block.id)):
            yield replace(block, output=result.output, has_failed=result.has_failed)
        elif block.name or block.id not in called:
            yield block


def _in_words(call: ServerCall) -> Text:
    """It as text: only a provider that calls the server could take it as it was."""
    texts = [f"[called {call.name} of the server {call.server} with {call.arguments}]"] if call.name else []
    if call.output or call.has_failed:
        texts.append(f"[its {'error' if call.has_failed else 'result'}]\n{call.output}")
    return Text("\n".join(texts))


def asked_in_words(item: Json) -> Text:
    """A call that the client was asked to allow, or what it said to that."""
    if item.get("type") == RESPONSES_ANSWER:
        reason = _text(item, "reason")
        said = "allowed it" if item.get("approve") is True else "did not allow it"
        return Text(f"[{said}: {reason}]" if reason else f"[{said}]")
    name, server, given = (_text(item, member) for member in ("name", "server_label", "arguments"))
    return Text(f"[asked to be allowed to call {name} of the server {server} with {given}]")


# --- of all -----------------------------------------------------------------------------------------


def _said(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(_text(part, "text") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _failure(error: object) -> str:
    """What a call failed with: a text, or an object that has one or a result."""
    if not isinstance(error, dict):
        return error if isinstance(error, str) else dumps(error).decode()
    return _text(error, "message") or _said(error.get("content")) or dumps(error).decode()


def _offered(tools: object) -> Iterator[Json]:
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict) and isinstance(tool.get("name"), str):
            yield {name: tool[name] for name in _NAMES if tool.get(name) is not None}


def _text(members: Json, name: str) -> str:
    value = members.get(name)
    return value if isinstance(value, str) else ""
