"""A request written as a generateContent body. The conversation comes last, so that turn N begins turn N+1."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from kinference.shapes import media
from kinference.shapes.alternate import alternated
from kinference.shapes.gemini.embed import emit_embeddings
from kinference.shapes.gemini.older_schemas import older, takes_json_schemas
from kinference.shapes.gemini.thinking import takes_details, thinking_config
from kinference.shapes.ir import (
    ASSISTANT,
    Audio,
    Block,
    File,
    Format,
    FormatKind,
    Image,
    Json,
    Media,
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
from kinference.shapes.json_text import object_text
from kinference.shapes.lost import Untranslatable
from kinference.shapes.seals import geminis_signatures

_MODES: Final = {ToolMode.AUTO: "AUTO", ToolMode.NONE: "NONE", ToolMode.REQUIRED: "ANY"}
_TIERS: Final = {"flex": "flex", "priority": "priority", "default": "standard", "standard_only": "standard"}
_RESOLUTIONS: Final = {
    "low": "MEDIA_RESOLUTION_LOW",
    "high": "MEDIA_RESOLUTION_HIGH",
    "original": "MEDIA_RESOLUTION_ULTRA_HIGH",
}
_SAMPLING: Final[Mapping[str, str]] = {
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "seed": "seed",
    "frequency_penalty": "frequencyPenalty",
    "presence_penalty": "presencePenalty",
}


def emit_request(request: Request) -> Json:
    """The body."""
    if request.inputs:
        return emit_embeddings(request)
    turns = alternated(request)
    body: Json = {}
    if request.system:
        body["systemInstruction"] = {"parts": [{"text": text.text} for text in request.system]}
    is_older = not takes_json_schemas(request.model)
    if request.tools:
        body["tools"] = [{"functionDeclarations": [_tool(tool, is_older=is_older) for tool in request.tools]}]
        if request.tool_choice is not None:
            body["toolConfig"] = {"functionCallingConfig": _choice(request)}
    if request.web_search is not None:
        body["tools"] = [*body.get("tools", ()), {"googleSearch": {}}]
    if request.runs_code:
        body["tools"] = [*body.get("tools", ()), {"codeExecution": {}}]
    if config := _config(request, is_older=is_older):
        body["generationConfig"] = config
    if request.service_tier in _TIERS:
        body["serviceTier"] = _TIERS[request.service_tier]
    body["contents"] = list(_contents(turns, is_detailed=takes_details(request.model)))
    return body


def _tool(tool: Tool, *, is_older: bool) -> Json:
    described: Json = {"name": tool.name} | ({"description": tool.description} if tool.description else {})
    if is_older:
        schema = older(tool.schema or {})
        return described | ({"parameters": schema} if "properties" in schema else {})
    return described | ({"parametersJsonSchema": tool.schema} if tool.schema else {})


def _choice(request: Request) -> Json:
    choice = request.tool_choice
    assert choice is not None, "asked for where there is one"
    names = list(choice.names)
    if names and choice.mode is ToolMode.AUTO:
        return {"mode": "VALIDATED", "allowedFunctionNames": names}
    return {"mode": _MODES[choice.mode]} | ({"allowedFunctionNames": names} if names else {})


def _config(request: Request, *, is_older: bool) -> Json:
    config: Json = {
        name: value for ours, name in _SAMPLING.items() if (value := getattr(request.sampling, ours)) is not None
    }
    if request.max_tokens is not None:
        config["maxOutputTokens"] = request.max_tokens
    if request.stop:
        config["stopSequences"] = list(request.stop)
    if request.format is not None:
        config |= _format(request.format, is_older=is_older)
    if request.answers > 1:
        config["candidateCount"] = request.answers
    if request.logprobs is not None:
        config |= {"responseLogprobs": True} | ({"logprobs": request.logprobs} if request.logprobs else {})
    if request.wants_images:
        config["responseModalities"] = ["TEXT", "IMAGE"]
    if request.thinking is not None:
        config["thinkingConfig"] = thinking_config(request.model, request.thinking)
    return config


def _format(form: Format, *, is_older: bool) -> Json:
    config: Json = {"responseMimeType": "application/json"}
    if form.kind is not FormatKind.JSON_SCHEMA:
        return config
    if is_older:
        schema = older(form.schema or {})
        return config | ({"responseSchema": schema} if schema else {})
    return config | {"responseJsonSchema": form.schema}


# --- contents ---------------------------------------------------------------------------------------


def _contents(turns: tuple[Turn, ...], *, is_detailed: bool) -> Iterator[Json]:
    names: dict[str, str] = {}
    for turn in turns:
        if turn.role is ASSISTANT:
            for block in turn.blocks:
                if type(block) is ToolCall:
                    names[block.id] = block.name
            yield {"role": "model", "parts": list(_said(turn.blocks, is_detailed=is_detailed))}
        else:
            yield {"role": "user", "parts": list(_asked(turn.blocks, names, is_detailed=is_detailed))}


def _said(blocks: Sequence[Block], *, is_detailed: bool) -> Iterator[Json]:
    """The model's parts. Its first call of a turn has to carry a signature, each its own where the client kept it."""
    signatures = geminis_signatures(blocks)
    for block in blocks:
        if type(block) is Text:
            yield {"text": block.text}
        elif type(block) is ToolCall:
            call, signature = _call(block), next(signatures, None)
            yield {"functionCall": call, "thoughtSignature": signature} if signature else {"functionCall": call}
        elif type(block) is not Sealed:
            yield _part(block, is_detailed=is_detailed)


def _asked(blocks: Sequence[Block], names: Mapping[str, str], *, is_detailed: bool) -> Iterator[Json]:
    """The user's parts. As many results have to stand together as there were calls, and what they show comes after."""
    shown: list[Block] = []
    for block in blocks:
        if type(block) is ToolResult:
            yield _result(block, names)
            shown += [inner for inner in block.content if type(inner) is not Text]
    for inner in shown:
        yield _part(inner, is_detailed=is_detailed)
    for block in blocks:
        if type(block) is Text:
            yield {"text": block.text}
        elif type(block) is not ToolResult:
            yield _part(block, is_detailed=is_detailed)


def _call(call: ToolCall) -> Json:
    text = object_text(call.arguments)
    if text is None:
        raise Untranslatable(f"tool call {call.id}: its arguments are not a JSON object")
    return {"name": call.name, "args": msgspec.Raw(text)}


def _result(result: ToolResult, names: Mapping[str, str]) -> Json:
    text = "\n".join([block.text for block in result.content if type(block) is Text])
    response = {"error" if result.is_error else "output": text}
    return {"functionResponse": {"name": names.get(result.id, result.id), "response": response}}


def _part(block: Block, *, is_detailed: bool) -> Json:
    match block:
        case Text() | Refusal():
            return {"text": block.text}
        case File(text=text) if text:
            return {"text": f"{block.name}\n{text}" if block.name else text}
        case Image(detail=detail) if is_detailed and detail in _RESOLUTIONS:
            return _media(block.source) | {"mediaResolution": {"level": _RESOLUTIONS[detail]}}
        case Image() | Audio() | File():
            return _media(block.source)
        case _:
            raise Untranslatable(f"{type(block).__name__.lower()}: a Gemini destination cannot carry it")


def _media(source: Media) -> Json:
    if source.url:
        mime = source.mime or media.type_of(source.url)
        return {"fileData": {"fileUri": source.url} | ({"mimeType": mime} if mime else {})}
    return {"inlineData": {"mimeType": source.mime, "data": source.data}}
