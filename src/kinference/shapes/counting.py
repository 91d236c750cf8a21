"""Counting the tokens of a request before it is made: which paths ask for it, the question in each destination's API,
and the answer in the client's.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from kinference.shapes.ir import Audio, Block, File, Image, Json, Request, ToolCall, ToolResult
from kinference.shapes.json_text import dumps, loads, object_of
from kinference.shapes.openai_chat.answer import count_in
from kinference.shapes.paths import filled
from kinference.shapes.scan import BadBody
from kinference.shapes.translate import CLIENTS, DESTINATIONS, Way, plan
from kinference.vocabulary import Api

TOKENIZE: Final = "/tokenize"
"""Where engines count what a chat comes to; whoever has no such path says so."""
BYTES_PER_TOKEN: Final = 4
MEDIA_TOKENS: Final = 1000
"""What an image or a file is taken for where nobody counts."""

_SUFFIXES: Final[tuple[str, ...]] = ("/messages/count_tokens", "/responses/input_tokens", ":countTokens")
_PATHS: Final[Mapping[Api, str]] = {
    Api.OPENAI_RESPONSES: "/v1/responses/input_tokens",
    Api.ANTHROPIC_MESSAGES: "/v1/messages/count_tokens",
    Api.GEMINI: "/v1beta/models/{model}:countTokens",
    Api.BEDROCK_CONVERSE: "/model/{model}/count-tokens",
    Api.VERTEX_ANTHROPIC: "/publishers/anthropic/models/count-tokens:rawPredict",
    Api.VERTEX_GEMINI: "/publishers/google/models/{model}:countTokens",
}
_AZURE_RESPONSES: Final = "/openai/v1/responses/input_tokens"
_ASKED: Final[Mapping[Api, tuple[str, ...]]] = {
    Api.OPENAI_CHAT: ("model", "messages", "tools"),
    Api.OPENAI_RESPONSES: (
        "model",
        "instructions",
        "input",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "reasoning",
        "text",
    ),
    Api.ANTHROPIC_MESSAGES: ("model", "system", "messages", "tools", "tool_choice", "thinking", "output_config"),
    Api.GEMINI: ("contents", "systemInstruction", "tools", "toolConfig"),
    Api.BEDROCK_CONVERSE: ("messages", "system", "toolConfig", "additionalModelRequestFields"),
}
"""What of a request has a part in its count."""


def is_count(path: str) -> bool:
    """Whether a path asks for a count and not for an answer."""
    return path.partition("?")[0].rstrip("/").endswith(_SUFFIXES)


def count_path(destination: Api, client: Api, model: str) -> str:
    """Where a destination counts. Raises BadBody for a model that cannot be named in a path."""
    if destination is Api.AZURE_OPENAI and client is Api.OPENAI_RESPONSES:
        return _AZURE_RESPONSES
    return filled(_PATHS.get(destination, TOKENIZE), model)


def count_request(body: bytes, way: Way) -> bytes:
    """The question for a destination. Raises BadBody."""
    planned = plan(body, way)
    shape = planned.back.destination
    whole = DESTINATIONS[shape].emit_request(planned.request)
    asked = {name: whole[name] for name in _ASKED[shape] if name in whole}
    if way.destination is Api.GEMINI:
        asked = {"generateContentRequest": {"model": f"models/{way.model}", **asked}}
    elif way.destination is Api.BEDROCK_CONVERSE:
        asked = {"input": {"converse": asked}}
    elif way.destination is Api.VERTEX_ANTHROPIC:
        asked = {"anthropic_version": "vertex-2023-10-16", **asked}
    return dumps(asked)


def read_count(body: bytes) -> int | None:
    """The count that any destination answers; None where it is none."""
    try:
        answer = object_of(loads(body), "answer")
    except BadBody:
        return None
    return count_in(answer, "input_tokens", "totalTokens", "inputTokens", "count")


def write_count(client: Api, tokens: int) -> bytes:
    """The count as the client's API has it."""
    if client is Api.GEMINI:
        return dumps({"totalTokens": tokens})
    kind: Json = {"object": "response.input_tokens"} if client is Api.OPENAI_RESPONSES else {}
    return dumps({**kind, "input_tokens": tokens})


def estimate(body: bytes, client: Api) -> int:
    """About how many tokens a request has, by its texts' bytes. Raises BadBody."""
    request = CLIENTS[client].parse_request(object_of(loads(body), "body"))
    text = sum(len(part.encode("utf-8", "replace")) for part in _texts(request))
    media = sum(1 for turn in request.turns for block in _flat(turn.blocks) if _is_media(block))
    return max(1, -(-text // BYTES_PER_TOKEN) + media * MEDIA_TOKENS)


def _texts(request: Request) -> Iterator[str]:
    yield from (block.text for block in request.system)
    for tool in request.tools:
        yield tool.name + tool.description + msgspec.json.encode(tool.schema, enc_hook=str).decode()
    for turn in request.turns:
        for block in _flat(turn.blocks):
            if isinstance(block, ToolCall):
                yield block.name + block.arguments
            else:
                yield getattr(block, "text", "")


def _flat(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        yield block
        if isinstance(block, ToolResult):
            yield from _flat(block.content)


def _is_media(block: Block) -> bool:
    return isinstance(block, Image | Audio) or (isinstance(block, File) and not block.text)
