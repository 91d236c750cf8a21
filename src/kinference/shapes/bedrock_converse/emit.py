"""A request written as a Converse body. The conversation comes last, so that turn N begins turn N+1."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from kinference.shapes import media
from kinference.shapes.alternate import alternated
from kinference.shapes.anthropic_messages.emit import NO_PARAMETERS
from kinference.shapes.bedrock_converse.embed import emit_embeddings
from kinference.shapes.claude import budget, effort_of, is_adaptive, takes_late_system
from kinference.shapes.ir import (
    ASSISTANT,
    USER,
    Audio,
    Block,
    CacheMark,
    Effort,
    File,
    FormatKind,
    Image,
    Json,
    Reasoning,
    Refusal,
    Request,
    Sealed,
    Text,
    Tool,
    ToolCall,
    ToolMode,
    ToolResult,
    Turn,
)
from kinference.shapes.json_text import dumps, object_text
from kinference.shapes.lost import Untranslatable

NO_CALLS: Final = "Do not call any tool in this turn."
_APART: Final = re.compile(r"\b(?:meta|mistral)\.")
"""Makers in whose models' turns calls and results stand alone."""
_GO_ON: Final = Text("Go on.")
_SEEN: Final = Text("I have the results.")
_TTLS: Final = ("5m", "1h")
_NAME_MAX: Final = 200
_BAD_NAME: Final = re.compile(r"(?:[^a-zA-Z0-9\-()\[\]])+")
_DOCUMENTS: Final = {
    "application/pdf": "pdf",
    "text/csv": "csv",
    "text/html": "html",
    "text/markdown": "md",
    "application/msword": "doc",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
}
_TIERS: Final = {"auto": "default", "standard_only": "default", "standard": "default"}


def emit_request(request: Request) -> Json:
    """The body."""
    if request.inputs:
        return emit_embeddings(request)
    turns = alternated(request, takes_system=takes_late_system(request.model))
    turns, tools, hint = _tooled(turns, request)
    if tools and _APART.search(request.model):
        turns = tuple(_apart(turns))
    body: Json = {}
    if config := _config(request):
        body["inferenceConfig"] = config
    if tools:
        body["toolConfig"] = {"tools": list(_tools(tools))} | _choice(request)
    body |= _thinking_and_form(request, _one_at_a_time(request, tools))
    if request.service_tier:
        body["serviceTier"] = {"type": _TIERS.get(request.service_tier, request.service_tier)}
    said = (text for text in request.system if not text.text.isspace())
    if system := (*said, *((Text(NO_CALLS),) if hint else ())):
        body["system"] = list(_marked(system))
    body["messages"] = [{"role": turn.role.value, "content": list(_content(turn))} for turn in turns]
    last = body["messages"][-1]["content"][-1]
    if turns[-1].role is ASSISTANT and "text" in last:
        last["text"] = last["text"].rstrip()  # a beginning of the answer may not end in white space
    return body


def _config(request: Request) -> Json:
    sampling = request.sampling
    given = {
        "maxTokens": request.max_tokens,
        "temperature": sampling.temperature,
        "topP": sampling.top_p,
        "stopSequences": list(request.stop) or None,
    }
    return {name: value for name, value in given.items() if value is not None}


# --- tools ------------------------------------------------------------------------------------------


def _tooled(turns: tuple[Turn, ...], request: Request) -> tuple[tuple[Turn, ...], tuple[Tool, ...], bool]:
    """The turns and tools, and whether the model has to be told in words not to call any: Converse cannot forbid it,
    and takes no calls in the history without tools.
    """
    choice = request.tool_choice
    has_calls = any(isinstance(block, ToolCall | ToolResult) for turn in turns for block in turn.blocks)
    if not request.tools:
        return (tuple(map(_flat, turns)) if has_calls else turns), (), False
    if choice is not None and choice.mode is ToolMode.NONE:
        return turns, (request.tools if has_calls else ()), has_calls
    names = choice.offered if choice is not None else ()
    return turns, tuple(tool for tool in request.tools if not names or tool.name in names), False


def _flat(turn: Turn) -> Turn:
    """The turn with its calls and results as text."""
    return replace(turn, blocks=tuple(flat for block in turn.blocks for flat in _flattened(block)))


def _flattened(block: Block) -> Iterator[Block]:
    if isinstance(block, ToolCall):
        yield Text(f"[called {block.name} with {block.arguments or '{}'}]")
    elif isinstance(block, ToolResult):
        yield Text(f"[result of {block.id}]")
        yield from block.content
    else:
        yield block


def _tools(tools: Iterable[Tool]) -> Iterator[Json]:
    for tool in tools:
        spec: Json = {"name": tool.name} | ({"description": tool.description} if tool.description else {})
        spec["inputSchema"] = {"json": tool.schema or NO_PARAMETERS}
        if tool.strict:
            spec["strict"] = True
        yield {"toolSpec": spec}
        if tool.cache is not None:
            yield _point(tool.cache)


def _choice(request: Request) -> Json:
    choice = request.tool_choice
    if choice is None or choice.mode is ToolMode.NONE:
        return {}
    if choice.mode is ToolMode.AUTO:
        return {} if request.parallel_tools is False and "claude" in request.model else {"toolChoice": {"auto": {}}}
    return {"toolChoice": {"tool": {"name": choice.names[0]}} if choice.names and not choice.offered else {"any": {}}}


def _one_at_a_time(request: Request, tools: Sequence[Tool]) -> Json:
    """Claude's own words for one call at a time. They are joined to what Converse was told, and refused where both say
    which calls there may be.
    """
    choice = request.tool_choice
    mode = ToolMode.AUTO if choice is None else choice.mode
    if request.parallel_tools is not False or not tools or mode is ToolMode.NONE or "claude" not in request.model:
        return {}
    kind = {"type": "auto"} if mode is ToolMode.AUTO else {}
    return {"tool_choice": {**kind, "disable_parallel_tool_use": True}}


def _apart(turns: Iterable[Turn]) -> Iterator[Turn]:
    """The turns with calls and results apart from words: some makers' models take no turn that has both."""
    for turn in turns:
        words = tuple(block for block in turn.blocks if not isinstance(block, ToolCall | ToolResult))
        others = tuple(block for block in turn.blocks if isinstance(block, ToolCall | ToolResult))
        if not words or not others:
            yield turn
        elif turn.role is ASSISTANT:
            yield from (replace(turn, blocks=words), Turn(USER, (_GO_ON,)), replace(turn, blocks=others))
        else:
            yield from (replace(turn, blocks=others), Turn(ASSISTANT, (_SEEN,)), replace(turn, blocks=words))


# --- thinking and form ------------------------------------------------------------------------------


def _thinking_and_form(request: Request, model_fields: Json) -> Json:
    output: Json = {}
    thinking = request.thinking
    if request.sampling.top_k is not None:
        model_fields["top_k"] = request.sampling.top_k
    if thinking is not None and thinking.effort is Effort.NONE:
        if is_adaptive(request.model):
            model_fields["thinking"] = {"type": "disabled"}
    elif thinking is not None:
        if is_adaptive(request.model):
            model_fields["thinking"] = {"type": "adaptive"}
            output["effort"] = effort_of(request)
        else:
            model_fields["thinking"] = {"type": "enabled", "budget_tokens": budget(request)}
    form = request.format
    if form is not None and form.kind is FormatKind.JSON_SCHEMA:
        schema: Json = {"schema": dumps(form.schema or {}).decode(), "name": form.name or "answer"}
        schema |= {"description": form.description} if form.description else {}
        output["textFormat"] = {"type": "json_schema", "structure": {"jsonSchema": schema}}
    body: Json = {"additionalModelRequestFields": model_fields} if model_fields else {}
    return body | ({"outputConfig": output} if output else {})


# --- messages ---------------------------------------------------------------------------------------


def _content(turn: Turn) -> Iterator[Json]:
    yield from _marked(turn.blocks)
    if turn.role is not USER:
        return
    kinds = {type(block) for block in turn.blocks}
    if File in kinds and Text not in kinds:
        yield {"text": "See the attached document."}  # which is not taken alone


def _marked(blocks: Iterable[Block]) -> Iterator[Json]:
    """The blocks, each mark a block of its own after the one that it was on."""
    for block in blocks:
        yield _block(block)
        if type(block) is Text and block.cache is None:
            continue
        mark = getattr(block, "cache", None)
        if mark is not None:
            yield _point(mark)


def _point(mark: CacheMark) -> Json:
    return {"cachePoint": {"type": "default"} | ({"ttl": mark.ttl} if mark.ttl in _TTLS else {})}


def _block(block: Block) -> Json:
    if type(block) is Text:  # for what most are matching takes too long
        return {"text": block.text}
    if type(block) is ToolCall:
        text = object_text(block.arguments)
        if text is None:
            raise Untranslatable(f"tool call {block.id}: its arguments are not a JSON object")
        return {"toolUse": {"toolUseId": block.id, "name": block.name, "input": msgspec.Raw(text)}}
    return _result(block) if type(block) is ToolResult else _other(block)


def _result(result: ToolResult) -> Json:
    said = [inner for inner in result.content if type(inner) is not Text or not inner.text.isspace()]
    content = [_block(inner) for inner in said] or [{"text": "(no output)"}]
    status = "error" if result.is_error else "success"
    return {"toolResult": {"toolUseId": result.id, "content": content, "status": status}}


def _other(block: Block) -> Json:
    match block:
        case Refusal():
            return {"text": block.text}
        case Image():
            kind = block.source.mime.removeprefix("image/")
            return {"image": {"format": kind, "source": {"bytes": block.source.data}}}
        case Audio():
            kind = media.audio_format(block.source.mime)
            return {"audio": {"format": kind, "source": {"bytes": block.source.data}}}
        case File():
            return _document(block)
        case Reasoning():
            thought = {"text": block.text} | ({"signature": block.signature} if block.signature else {})
            return {"reasoningContent": {"reasoningText": thought}}
        case Sealed():
            return {"reasoningContent": {"redactedContent": block.data}}
        case _:
            raise Untranslatable(f"{type(block).__name__.lower()}: a Converse destination cannot carry it")


def _document(file: File) -> Json:
    name = _BAD_NAME.sub(" ", file.name).strip()[:_NAME_MAX] or "document"
    cites = {"citations": {"enabled": True}} if file.cites else {}
    if file.text:
        return {"document": {"format": "txt", "name": name, "source": {"text": file.text}, **cites}}
    kind = _DOCUMENTS.get(file.source.mime)
    if kind is None:
        raise Untranslatable("file: a Converse destination takes no file of this type")
    return {"document": {"format": kind, "name": name, "source": {"bytes": file.source.data}, **cites}}
