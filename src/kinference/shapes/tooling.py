"""Tools as a destination takes them, and their calls as the client knows them: names within the destination's alphabet
and whole, where the client has a tool's namespace apart, and free-form tools as functions of one string.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Final, TypeVar

from msgspec.structs import replace

from kinference.shapes.answers import ArgumentsPiece, Finished, Piece, ToolBegun
from kinference.shapes.ir import Block, Json, Request, Tool, ToolCall, ToolResult, blocks_of, is_simple
from kinference.shapes.json_text import as_object, dumps
from kinference.structs import Frozen

T = TypeVar("T", ToolCall, ToolBegun)

NAME_MAX: Final = 64
ID_MAX: Final = 40
"""No API asks for shorter ids."""
INPUT: Final[Json] = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
"""The schema of a free-form tool where there are only functions."""

_SAFE: Final = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
_BAD: Final = re.compile(r"[^a-zA-Z0-9_-]")
_BAD_BEGINNING: Final = re.compile(r"[0-9-]")
"""With which no tool's name begins at Google."""
_DIGEST_CHARS: Final = 8


class Tooling(Frozen, frozen=True):
    """What was changed about the tools of one request, so that its answer can be changed back."""

    names: Mapping[str, str] = {}
    """The destination's names that differ, and the client's."""
    free_form: frozenset[str] = frozenset()
    """Tools, by the client's name, whose input is text to the client and an object to the destination."""
    namespaces: Mapping[str, str] = {}
    """Those of tools, by the client's name with it."""
    forms: Mapping[str, str] = {}
    """The kinds of tools, by the client's name, whose calls are of a kind of their own to the client."""


def fit_tools(request: Request, *, wraps: bool, id_max: int = NAME_MAX) -> tuple[Request, Tooling]:
    """The request with names that every API takes and ids no longer than `id_max`, free-form tools as functions where
    `wraps`, and how to go back.
    """
    names = _safe_names(request)
    free_form = frozenset(tool.name for tool in request.tools if tool.is_free_form) if wraps else frozenset()
    tooling = Tooling(
        {safe: name for name, safe in names.items()},
        free_form,
        {tool.name: tool.namespace for tool in request.tools if tool.namespace},
        {tool.name: tool.form for tool in request.tools if tool.form},
    )
    if not names and not free_form and not _has_bad_ids(request, id_max):
        return request, tooling
    choice = request.tool_choice
    if choice is not None:
        choice = replace(choice, names=tuple(names.get(name, name) for name in choice.names))
    tools = tuple(_tool(tool, names, tool.name in free_form) for tool in request.tools)
    turns = tuple(
        replace(turn, blocks=tuple(_block(block, names, wraps, id_max) for block in turn.blocks))
        for turn in request.turns
    )
    return replace(request, tools=tools, tool_choice=choice, turns=turns), tooling


def whole_name(namespace: str, name: str) -> str:
    """One name for a tool in a namespace."""
    return f"{namespace}{name}" if not namespace or namespace.endswith("__") else f"{namespace}__{name}"


def safe_id(name: str, longest: int = NAME_MAX) -> str:
    """An id within every API's alphabet and this length; one that is so already stays as it is."""
    plain = _BAD.sub("_", name)
    if plain == name and len(name) <= longest:
        return name
    digest = blake2b(name.encode("utf-8", "replace"), digest_size=_DIGEST_CHARS // 2).hexdigest()
    return f"{plain[: longest - _DIGEST_CHARS - 1]}_{digest}"


def _safe_names(request: Request) -> dict[str, str]:
    names = dict.fromkeys([tool.name for tool in request.tools])
    if not is_simple(request):
        names |= dict.fromkeys([block.name for block in blocks_of(request.turns) if type(block) is ToolCall])
    if not names or are_safe_names(names):
        return {}
    return {name: safe for name in names if (safe := _safe_name(name)) != name}


def _safe_name(name: str) -> str:
    """A tool's name for every API."""
    return safe_id(f".{name}" if _BAD_BEGINNING.match(name) else name)


def _has_bad_ids(request: Request, id_max: int) -> bool:
    if id_max >= ID_MAX and is_simple(request):
        return False
    blocks = blocks_of(request.turns)
    ids = [block.id for block in blocks if type(block) is ToolCall or type(block) is ToolResult]
    return not are_safe(ids, id_max)


def are_safe_names(names: Collection[str]) -> bool:
    """Whether each can be a tool's name in every API."""
    return are_safe(names, NAME_MAX) and _BAD_BEGINNING.search("".join([name[:1] for name in names])) is None


def are_safe(names: Collection[str], longest: int) -> bool:
    """Whether each is within every API's alphabet and this length."""
    if not names:
        return True
    text = "".join(names)
    return text.isascii() and not text.encode().translate(None, _SAFE) and max(map(len, names)) <= longest


def _tool(tool: Tool, names: Mapping[str, str], wraps: bool) -> Tool:
    tool = replace(tool, name=names.get(tool.name, tool.name))
    if not wraps:
        return tool
    if tool.grammar is not None:
        told = f"The input has to obey this {tool.grammar.syntax} grammar:\n{tool.grammar.definition}"
        tool = replace(tool, description=f"{tool.description}\n\n{told}".strip())
    return replace(tool, is_free_form=False, schema=INPUT, grammar=None)


def _block(block: Block, names: Mapping[str, str], wraps: bool, id_max: int) -> Block:
    match block:
        case ToolCall():
            block = replace(block, id=safe_id(block.id, id_max), name=names.get(block.name, block.name))
            if not wraps or not block.is_free_form:
                return block
            return replace(block, arguments=dumps({"input": block.arguments}).decode(), is_free_form=False)
        case ToolResult():
            return replace(block, id=safe_id(block.id, id_max))
        case _:
            return block


class ToolRestorer:
    """Changes the calls of an answer back into what the client knows."""

    def __init__(self, tooling: Tooling) -> None:
        self._tooling = tooling
        self._held: dict[int, list[str]] = {}
        self.changes = bool(tooling.names or tooling.free_form or tooling.namespaces or tooling.forms)

    def call(self, block: Block) -> Block:
        """A whole call; any other block stays."""
        if type(block) is not ToolCall or not self.changes:
            return block
        name = self._tooling.names.get(block.name, block.name)
        known = self._known(replace(block, name=name))
        if name not in self._tooling.free_form:
            return known
        return replace(known, arguments=_unwrapped(block.arguments), is_free_form=True)

    def _known(self, call: T) -> T:
        """The call as the client knows its tool."""
        tooling = self._tooling
        if namespace := tooling.namespaces.get(call.name):
            name = call.name.removeprefix(whole_name(namespace, ""))
            return replace(call, name=name, namespace=namespace)
        form = tooling.forms.get(call.name, "")
        return replace(call, form=form) if form else call

    def pieces(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """The pieces of a stream. The input of a free-form tool comes when it is whole."""
        for piece in pieces:
            match piece:
                case ToolBegun():
                    name = self._tooling.names.get(piece.name, piece.name)
                    is_free_form = name in self._tooling.free_form
                    if is_free_form:
                        self._held[piece.call] = []
                    yield self._known(replace(piece, name=name, is_free_form=is_free_form))
                case ArgumentsPiece() if piece.call in self._held:
                    self._held[piece.call].append(piece.text)
                case Finished():
                    yield from self._whole()
                    yield piece
                case _:
                    yield piece

    def _whole(self) -> Iterator[Piece]:
        for call, texts in self._held.items():
            yield ArgumentsPiece(call, _unwrapped("".join(texts)))
        self._held.clear()


def _unwrapped(arguments: str) -> str:
    text = (as_object(arguments) or {}).get("input")
    return text if isinstance(text, str) else arguments
