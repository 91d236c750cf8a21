"""What clouds ask of a body beyond the API whose shape it has."""

import re
from typing import Final

import msgspec

from kinference.shapes.ir import Block, File, Image, Request, ToolResult, blocks_of
from kinference.shapes.lost import Untranslatable
from kinference.shapes.patch import replace_member, without_member
from kinference.vocabulary import Api

_VERTEX_ANTHROPIC: Final = b'"anthropic_version":"vertex-2023-10-16"'
_BATCH: Final = b'{"requests":'
_BEDROCK = re.compile(r"(?:[a-z0-9-]+\.)*?(?:bedrock|bedrock-runtime)(?:-fips)?\.([a-z]{2}(?:-[a-z]+)+-\d+)\.")


class _Part(msgspec.Struct):
    text: str


class _Content(msgspec.Struct):
    parts: tuple[_Part, ...]


class _Text(msgspec.Struct):
    content: _Content
    outputDimensionality: int | None = None  # noqa: N815 - as the API spells it


class _Batch(msgspec.Struct):
    """As translation writes it."""

    requests: tuple[_Text, ...]


def region_of(host: str) -> str:
    """The region that a host of Amazon Bedrock's belongs to; "" where the name tells none."""
    found = _BEDROCK.match(host)
    return found[1] if found else ""


def check_vertex(request: Request) -> None:
    """Raises Untranslatable where Claude on Vertex AI cannot be told what the same model at home can."""
    if request.mcp:
        raise Untranslatable("mcp_servers: Vertex AI has no calls of them")
    if any(_is_elsewhere(block) for block in blocks_of(request.turns)):
        raise Untranslatable("messages: this destination needs inline image and file data, not a URL")


def _is_elsewhere(block: Block) -> bool:
    if isinstance(block, ToolResult):
        return any(map(_is_elsewhere, block.content))
    return isinstance(block, Image | File) and bool(block.source.url)


def hosted(body: bytes, destination: Api) -> bytes:
    """The body as this host takes it; the same object where it asks for nothing. Raises BadBody."""
    if destination is Api.VERTEX_ANTHROPIC:
        body = without_member(body, "context_management")  # which it refuses
        return replace_member(body, "model", _VERTEX_ANTHROPIC)  # its path names the model
    if destination is Api.VERTEX_GEMINI and body.startswith(_BATCH):
        return _predicted(body)
    return body


def _predicted(body: bytes) -> bytes:
    """A batch of texts to embed as Vertex AI takes it, which has another API for that than Gemini's own."""
    texts = msgspec.json.decode(body, type=_Batch).requests
    size = texts[0].outputDimensionality
    instances = [{"content": "".join(part.text for part in text.content.parts)} for text in texts]
    parameters = {} if size is None else {"parameters": {"outputDimensionality": size}}
    return msgspec.json.encode({"instances": instances} | parameters)
