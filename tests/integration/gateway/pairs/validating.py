"""What providers refuse beyond what the types of their SDKs say: written from their documentation and their errors."""

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from kinference.shapes.reasoners import is_openais
from kinference.vocabulary import Api
from tests.golden.official_requests import faults

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def refused(api: Api, body: Any) -> list[str]:
    """Why a provider of this API would answer 400."""
    return [*faults(api, _known(body) if api is Api.OPENAI_CHAT else body), *_BEYOND[api](body)]


def _known(body: Any) -> Any:
    """Without what servers of others' models added to Chat: they take the thoughts that they gave."""
    if is_openais(body["model"]):
        return body
    messages = [
        {name: value for name, value in message.items() if name != "reasoning_content"} for message in body["messages"]
    ]
    return {**body, "messages": messages}


def _chat(body: Any) -> Iterator[str]:
    yield from _calls_and_results(_chat_steps(body["messages"]))
    functions = [tool["function"] for tool in body.get("tools", ()) if tool["type"] == "function"]
    yield from _names(function["name"] for function in functions)
    yield from _schemas(function["parameters"] for function in functions if "parameters" in function)
    if body.get("tools") == []:
        yield "tools: empty"
    if len(body.get("stop") or ()) > 4:
        yield "stop: more than four"
    if "stream_options" in body and not body.get("stream"):
        yield "stream_options: only with stream"
    if "tool_choice" in body and not body.get("tools"):
        yield "tool_choice: only with tools"
    if body.get("parallel_tool_calls") is not None and not body.get("tools"):
        yield "parallel_tool_calls: only with tools"


def _chat_steps(messages: Any) -> Iterator[tuple[str, list[str]]]:
    for message in messages:
        if message["role"] == "tool":
            yield "result", [message["tool_call_id"]]
        elif message.get("tool_calls"):
            yield "calls", [call["id"] for call in message["tool_calls"]]
        else:
            yield "text", []


def _calls_and_results(steps: Iterator[tuple[str, list[str]]]) -> Iterator[str]:
    """Every call is answered before anything else is said, and nothing else is."""
    open_calls: set[str] = set()
    for kind, ids in steps:
        if kind == "result":
            yield from (f"{one}: no such call" for one in ids if one not in open_calls)
            open_calls -= {*ids}
            continue
        if open_calls and kind != "calls":
            yield f"{sorted(open_calls)}: without results"
        open_calls |= {*ids}
    if open_calls:
        yield f"{sorted(open_calls)}: without results"


def _schemas(schemas: Iterator[Any]) -> Iterator[str]:
    for schema in schemas:
        try:
            Draft202012Validator.check_schema(schema)
        except SchemaError as error:
            yield f"tools: {error.message}"


def _names(names: Iterator[str]) -> Iterator[str]:
    yield from (f"{name}: no name of a tool" for name in names if not NAME.fullmatch(name))


def _responses(body: Any) -> Iterator[str]:
    yield from _names(tool["name"] for tool in body.get("tools", ()) if "name" in tool)
    yield from _schemas(tool["parameters"] for tool in body.get("tools", ()) if tool.get("parameters"))
    if body.get("store") is not False:
        yield "store: keeps what nobody will ask for"
    if isinstance(body["input"], list):
        yield from _calls_and_results(_response_steps(body["input"]))
        if not body["input"]:
            yield "input: empty"


def _response_steps(items: Any) -> Iterator[tuple[str, list[str]]]:
    for item in items:
        kind = item.get("type", "message")
        if kind in ("function_call_output", "custom_tool_call_output"):
            yield "result", [item["call_id"]]
        elif kind in ("function_call", "custom_tool_call"):
            yield "calls", [item["call_id"]]
        elif kind == "message":
            yield "text", []


def _messages(body: Any) -> Iterator[str]:
    yield from _names(tool["name"] for tool in body.get("tools", ()))
    yield from _schemas(tool["input_schema"] for tool in body.get("tools", ()) if "input_schema" in tool)
    yield from _calls_and_results(_steps(body["messages"], "tool_use", "tool_result", lambda block: block))
    if body["messages"][0]["role"] != "user":
        yield "messages: the first is not the user's"
    for message in body["messages"]:
        yield from _message(message)
    thinking = body.get("thinking") or {}
    if thinking.get("type") == "enabled" and not 1024 <= thinking["budget_tokens"] < body["max_tokens"]:
        yield "thinking.budget_tokens: not between 1024 and max_tokens"
    if thinking and thinking["type"] != "disabled" and {"temperature", "top_p", "top_k"} & body.keys():
        yield "sampling: not with thinking"
    if json.dumps(body).count('"cache_control"') > 4:
        yield "cache_control: more than four"


def _message(message: Any) -> Iterator[str]:
    blocks = (
        message["content"] if isinstance(message["content"], list) else [{"type": "text", "text": message["content"]}]
    )
    if not blocks:
        yield "content: empty"
    kinds = [block["type"] for block in blocks]
    if "tool_result" in kinds and kinds != sorted(kinds, key=lambda kind: kind != "tool_result"):
        yield "content: results after other blocks"
    for block in blocks:
        if block["type"] == "text" and not block["text"].strip():
            yield "text: nothing but space"
        if block["type"] == "thinking" and not block["signature"].startswith("anthropic-"):
            yield "thinking.signature: not of this provider"


def _steps(messages: Any, call: str, result: str, of: Callable[[Any], Any]) -> Iterator[tuple[str, list[str]]]:
    for message in messages:
        blocks = message["content"] if isinstance(message["content"], list) else []
        results = [of(block)["tool_use_id"] for block in blocks if block["type"] == result]
        calls = [of(block)["id"] for block in blocks if block["type"] == call]
        if results:
            yield "result", results
        yield ("calls", calls) if calls else (("text", []) if not results else ("result", []))


def _converse(body: Any) -> Iterator[str]:
    tools = body.get("toolConfig", {}).get("tools", ())
    yield from _names(tool["toolSpec"]["name"] for tool in tools if "toolSpec" in tool)
    yield from _schemas(tool["toolSpec"]["inputSchema"]["json"] for tool in tools if "toolSpec" in tool)
    roles = [message["role"] for message in body["messages"]]
    if roles != (["user", "assistant"] * len(roles))[: len(roles)]:
        yield "messages: the roles do not alternate"
    yield from _calls_and_results(_converse_steps(body["messages"]))
    has_calls = any(
        "toolUse" in block or "toolResult" in block for each in body["messages"] for block in each["content"]
    )
    if has_calls and not tools:
        yield "toolConfig: missing, with calls in messages"
    for message in body["messages"]:
        for block in message["content"]:
            if "text" in block and not block["text"].strip():
                yield "text: nothing but space"
            signature = block.get("reasoningContent", {}).get("reasoningText", {}).get("signature", "anthropic-")
            if not signature.startswith("anthropic-"):
                yield "signature: not of this provider"


def _converse_steps(messages: Any) -> Iterator[tuple[str, list[str]]]:
    for message in messages:
        results = [block["toolResult"]["toolUseId"] for block in message["content"] if "toolResult" in block]
        calls = [block["toolUse"]["toolUseId"] for block in message["content"] if "toolUse" in block]
        if results:
            yield "result", results
        yield ("calls", calls) if calls else (("text", []) if not results else ("result", []))


def _gemini(body: Any) -> Iterator[str]:
    for tool in body.get("tools", ()):
        declared = tool.get("functionDeclarations", ())
        yield from _names(one["name"] for one in declared)
        yield from (f"{one['name']}: begins as no name does" for one in declared if one["name"][0] in "0123456789-")
    contents = body["contents"]
    if not contents:
        yield "contents: empty"
    due = 0
    for content in contents:
        calls = sum("functionCall" in part for part in content["parts"])
        results = sum("functionResponse" in part for part in content["parts"])
        if content.get("role", "user") not in ("user", "model"):
            yield f"role: {content['role']}"
        if results != due:
            yield f"functionResponse: {results} for {due} calls"
        due = calls
        yield from _parts(content["parts"])


def _parts(parts: Any) -> Iterator[str]:
    if not parts:
        yield "parts: empty"
    for part in parts:
        held = part.keys() - {"thought", "thoughtSignature", "mediaResolution", "videoMetadata"}
        if len(held) > 1 or not part:
            yield f"part: {sorted(part)} is not one thing"
        if "thoughtSignature" in part and base64.b64decode(part["thoughtSignature"])[:7] not in (
            b"gemini-",
            b"skip_th",
        ):
            yield "thoughtSignature: not of this provider"


def _nothing(_body: Any) -> Iterator[str]:
    yield from ()


_BEYOND: Mapping[Api, Callable[[Any], Iterator[str]]] = {
    Api.OPENAI_CHAT: _chat,
    Api.OPENAI_RESPONSES: _responses,
    Api.OPENAI_COMPLETIONS: _nothing,
    Api.OPENAI_EMBEDDINGS: _nothing,
    Api.ANTHROPIC_MESSAGES: _messages,
    Api.GEMINI: _gemini,
    Api.BEDROCK_CONVERSE: _converse,
}
