"""JSON that has to be asked for in words: where an API has no way to say it, and where it wants the word besides."""

from typing import Final

from msgspec.structs import replace

from kinference.shapes.claude import holds_to_schemas
from kinference.shapes.concepts import Concept, Treatment, treatment
from kinference.shapes.ir import FormatKind, Request, Role, Text, Turn
from kinference.shapes.json_text import dumps
from kinference.vocabulary import Api

JSON_HINT: Final = "Answer with one JSON object and nothing else: no text around it and no code fence."
SCHEMA_HINT: Final = "Answer with JSON that obeys this schema and nothing else: no text around it and no code fence.\n"
_OPENAI_APIS: Final = frozenset({Api.OPENAI_CHAT, Api.OPENAI_RESPONSES})
_CLAUDE_APIS: Final = frozenset({Api.ANTHROPIC_MESSAGES, Api.BEDROCK_CONVERSE})
_WORD: Final = "json"
"""Without which OpenAI refuses to answer in it."""


def only_hints(request: Request, target: Api) -> bool:
    """Whether the target can be told of the answer's form in words alone: OpenAI holds its models to objects only, and
    Claude's older ones are held to nothing.
    """
    form = request.format
    if form is None:
        return False
    if form.kind is FormatKind.JSON_OBJECT:
        return treatment(Concept.JSON_OBJECT, target) is Treatment.CLAMPED
    if target in _CLAUDE_APIS:
        return not holds_to_schemas(request.model)
    return _is_openais(request, target) and (form.schema or {}).get("type") != "object"


def hinted(request: Request, target: Api) -> Request:
    """The request with the words that the target needs."""
    form = request.format
    if form is None:
        return request
    if only_hints(request, target):
        is_schema = form.kind is FormatKind.JSON_SCHEMA
        text = SCHEMA_HINT + dumps(form.schema).decode() if is_schema else JSON_HINT
        return replace(request, system=(*request.system, Text(text)), format=None)
    if form.kind is FormatKind.JSON_OBJECT and _is_openais(request, target) and not _says_so(request, target):
        if target is Api.OPENAI_CHAT:
            return replace(request, system=(*request.system, Text(JSON_HINT)))
        return replace(request, turns=(Turn(Role.SYSTEM, (Text(JSON_HINT),)), *request.turns))
    return request


def _is_openais(request: Request, target: Api) -> bool:
    return target in _OPENAI_APIS and not request.is_plain_chat


def _says_so(request: Request, target: Api) -> bool:
    """Whether the word is where OpenAI looks for it: in Responses that is the input, and not the instructions."""
    said = [block for turn in request.turns for block in turn.blocks]
    if target is Api.OPENAI_CHAT:
        said += request.system
    return any(isinstance(block, Text) and _WORD in block.text.lower() for block in said)
