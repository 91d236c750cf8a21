"""What of an answer its client's API has no form for: told, as what is lost of a request is."""

from collections.abc import Iterator, Mapping
from typing import Final

from kinference.shapes.answers import (
    Answer,
    ArgumentsPiece,
    Cited,
    CitedWithin,
    Counted,
    Failed,
    Finish,
    Finished,
    Piece,
    ReasoningEnd,
    ReasoningPiece,
    RefusalPiece,
    Shown,
    Started,
    TextPiece,
    ToolBegun,
    cited,
)
from kinference.shapes.ir import (
    Block,
    Executed,
    Image,
    Reasoning,
    Refusal,
    Sealed,
    Searched,
    ServerCall,
    ServerTools,
    Text,
    ToolCall,
    Unread,
)
from kinference.shapes.json_text import object_text
from kinference.shapes.lost import Lost, safe
from kinference.vocabulary import Api

_FRAME: Final = (Started, Counted, Finished, Failed)
_SAID: Final = (Text, TextPiece, Refusal, RefusalPiece, *_FRAME)
_CHAT: Final = (
    *(*_SAID, Reasoning, ReasoningPiece, ReasoningEnd, Sealed),
    *(ToolCall, ToolBegun, ArgumentsPiece, Cited),
)
_ALL: Final = (*_CHAT, Image, Shown)
SHOWN: Final[Mapping[Api, frozenset[type]]] = {
    Api.OPENAI_CHAT: frozenset(_ALL),
    Api.OPENAI_RESPONSES: frozenset((*_ALL, Executed, Searched, ServerCall, ServerTools)),
    Api.OPENAI_COMPLETIONS: frozenset(_SAID),
    Api.OPENAI_EMBEDDINGS: frozenset(_SAID),
    Api.ANTHROPIC_MESSAGES: frozenset((*_CHAT, Executed, CitedWithin, ServerCall)),
    Api.GEMINI: frozenset((*_ALL, Executed)),
}
"""The blocks and pieces that an API's answers have a form for."""
_NAMES: Final[Mapping[type, str]] = {
    **dict.fromkeys((Image, Shown), "image"),
    **dict.fromkeys((Reasoning, ReasoningPiece, ReasoningEnd, Sealed), "reasoning"),
    **dict.fromkeys((ToolCall, ToolBegun, ArgumentsPiece), "tool_call"),
    Cited: "citation",
    CitedWithin: "document_citation",
    Executed: "code_execution",
    Searched: "web_search",
    ServerCall: "mcp_call",
    ServerTools: "mcp_list_tools",
}
PARTS: Final[Mapping[str, type]] = {
    "text": Text,
    "refusal": Refusal,
    "reasoning": Reasoning,
    "reasoning that only its issuer can read": Sealed,
    "tool calls": ToolCall,
    "images": Image,
    "citations of web pages": Cited,
    "citations of the request's documents": CitedWithin,
    "code that the provider ran": Executed,
    "searches that the provider made": Searched,
    "calls of MCP servers that the provider made": ServerCall,
    "lists of what MCP servers offer": ServerTools,
}
"""What documentation calls the parts of an answer."""
_ONE_ANSWER: Final = (Api.ANTHROPIC_MESSAGES, Api.OPENAI_RESPONSES)
_WHOLE_CALLS: Final = (Api.ANTHROPIC_MESSAGES, Api.GEMINI)
"""APIs whose calls have an object for their arguments."""


def lost_of(answer: Answer, client: Api) -> tuple[Lost, ...]:
    """What a whole answer loses on its way to a client, each kind once."""
    return tuple(dict.fromkeys(_lost_of(answer, client)))


def _lost_of(answer: Answer, client: Api) -> Iterator[Lost]:
    shown = SHOWN[client]
    for one in (answer, *(() if client in _ONE_ANSWER else answer.others)):
        yield from (lost(block) for block in one.blocks if type(block) not in shown)
        kinds = {type(cited(citation)) for citation in one.citations}
        yield from (Lost("dropped", f"answer.{_NAMES[kind]}") for kind in (Cited, CitedWithin) if kind in kinds - shown)
        if one.finish is Finish.LENGTH and client in _WHOLE_CALLS and any(map(_is_cut, one.blocks)):
            yield Lost("dropped", f"answer.{_NAMES[ToolCall]}", "cut")
    if answer.others and client in _ONE_ANSWER:
        yield Lost("dropped", "answer.others")


def _is_cut(block: Block) -> bool:
    return type(block) is ToolCall and object_text(block.arguments) is None


def lost(part: Block | Piece) -> Lost:
    """What it is called that a block or a piece is lost."""
    name = safe(part.kind) if isinstance(part, Unread) else _NAMES.get(type(part), type(part).__name__.lower())
    return Lost("dropped", f"answer.{name}")
