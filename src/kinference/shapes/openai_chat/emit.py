"""A request written as a Chat Completions body. The conversation comes last, so that turn N begins turn N+1."""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Final

from kinference.shapes import media
from kinference.shapes.ir import (
    ASSISTANT,
    SYSTEM,
    Audio,
    Block,
    CacheMark,
    File,
    Format,
    FormatKind,
    Image,
    Json,
    Reasoning,
    Refusal,
    Request,
    Sampling,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Turn,
    begins_answer,
)
from kinference.shapes.lost import Untranslatable
from kinference.shapes.seals import geminis_signatures, is_gemini
from kinference.shapes.web_search import to_chat

BREAKPOINT: Final[Json] = {"prompt_cache_breakpoint": {"mode": "explicit"}}
"""Up to where the prompt is worth caching, for a model that can be told; images take none."""
KEY_MAX: Final = 64
USER_MAX: Final = 128
_SAMPLING = ("temperature", "top_p", "seed", "frequency_penalty", "presence_penalty")
_EXTENDED = ("top_k", "min_p", "repetition_penalty")


def emit_request(request: Request) -> Json:
    """The body."""
    body: Json = {"model": request.model}
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        body |= _tool_rules(request)
    if request.web_search is not None:
        body["web_search_options"] = to_chat(request.web_search)
    if request.wants_images:
        body["modalities"] = ["image", "text"]
    if request.max_tokens is not None:
        body["max_tokens" if request.is_plain_chat else "max_completion_tokens"] = request.max_tokens
    body |= sampling(request.sampling, (*_SAMPLING, *_EXTENDED) if request.is_extended_chat else _SAMPLING)
    if request.stop:
        body["stop"] = list(request.stop)
    if request.format is not None:
        body["response_format"] = _format(request.format)
    if request.thinking is not None:
        body["reasoning_effort"] = request.thinking.effort.word
    body |= _probabilities(request)
    body |= {"user": request.end_user} if request.is_plain_chat and request.end_user else {}
    body |= identity(request)
    if request.verbosity:
        body["verbosity"] = request.verbosity
    if request.is_streaming:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    if request.is_extended_chat and begins_answer(request):
        body |= {"add_generation_prompt": False, "continue_final_message": True}
    body["messages"] = said(_messages(request))
    return body


def said(messages: Iterable[Json]) -> list[Json]:
    """The conversation. Raises Untranslatable where there is none."""
    written = list(messages)
    if not written:
        raise Untranslatable("messages: nothing is said in them; the body has to carry its prompt")
    return written


def _probabilities(request: Request) -> Json:
    body: Json = {"n": request.answers} if request.answers > 1 else {}
    if request.logprobs is not None:
        body |= {"logprobs": True} | ({"top_logprobs": request.logprobs} if request.logprobs else {})
    return body | ({"logit_bias": request.logit_bias} if request.logit_bias else {})


def sampling(numbers: Sampling, names: Iterable[str]) -> Json:
    """The numbers that were given, of those that the API has."""
    return {name: value for name in names if (value := getattr(numbers, name)) is not None}


def identity(request: Request) -> Json:
    """Who asks, and at what price, in OpenAI's words."""
    tier = "default" if request.service_tier.startswith("standard") else request.service_tier
    own = {
        "safety_identifier": short(request.end_user, USER_MAX),
        "prompt_cache_key": short(request.cache_key, KEY_MAX),
    }
    given = ({} if request.is_plain_chat else own) | {"service_tier": tier}
    return {name: value for name, value in given.items() if value}


def short(name: str, longest: int) -> str:
    """An id within the length that is taken: a longer one by its digest, the same for the same."""
    return name if len(name) <= longest else blake2b(name.encode("utf-8", "replace"), digest_size=32).hexdigest()


# --- tools ------------------------------------------------------------------------------------------


def _tool(tool: Tool) -> Json:
    described = {"name": tool.name} | ({"description": tool.description} if tool.description else {})
    if tool.is_free_form:
        if tool.grammar is not None:
            grammar = {"syntax": tool.grammar.syntax, "definition": tool.grammar.definition}
            return {"type": "custom", "custom": described | {"format": {"type": "grammar", "grammar": grammar}}}
        return {"type": "custom", "custom": described}
    function: Json = {**described, "parameters": tool.schema or {"type": "object", "properties": {}}}
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def _tool_rules(request: Request) -> Json:
    rules: Json = {}
    if request.tool_choice is not None:
        rules["tool_choice"] = _choice(request.tool_choice)
    if request.parallel_tools is not None:
        rules["parallel_tool_calls"] = request.parallel_tools
    return rules


def _choice(choice: ToolChoice) -> str | Json:
    functions = [{"type": "function", "function": {"name": name}} for name in choice.names]
    if functions and not choice.offered:
        return functions[0]
    if functions:
        return {"type": "allowed_tools", "allowed_tools": {"mode": choice.mode.value, "tools": functions}}
    return choice.mode.value


def _format(form: Format) -> Json:
    if form.kind is FormatKind.JSON_OBJECT:
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": schema_members(form)}


def schema_members(form: Format) -> Json:
    """Name, schema and what else was given, as both OpenAI APIs have them."""
    members: Json = {"name": form.name or "answer", "schema": form.schema or {}}
    if form.description:
        members["description"] = form.description
    if form.strict is not None:
        members["strict"] = form.strict
    return members


# --- messages ---------------------------------------------------------------------------------------


def _messages(request: Request) -> Iterator[Json]:
    if request.system:
        yield {"role": "system", "content": _parts(request.system)}
    shown: list[Block] = []
    for turn in request.turns:
        if shown and not _is_of_results(turn):
            yield {"role": "user", "content": _parts(shown)}
            shown = []
        if turn.role is ASSISTANT:
            signatures = geminis_signatures(turn.blocks) if is_gemini(request.model) else iter(())
            yield from _assistant(turn, signatures)
        elif turn.role is SYSTEM:
            yield {"role": "system", "content": _parts(turn.blocks)}
        elif _is_of_results(turn):
            yield from _results(turn.blocks)
            shown += _shown(turn.blocks)
        else:
            yield from _user(turn)
    if shown:
        yield {"role": "user", "content": _parts(shown)}


def _is_of_results(turn: Turn) -> bool:
    """Whether results are all there is: others of the same calls may be in the next turn, with nothing between them."""
    return bool(turn.blocks) and all(type(block) is ToolResult for block in turn.blocks)


def _assistant(turn: Turn, signatures: Iterator[str]) -> Iterator[Json]:
    message: Json = {"role": "assistant"}
    blocks = turn.blocks
    if len(blocks) == 1 and type(text := blocks[0]) is Text and text.cache is None and not turn.name:  # as most are
        yield {"role": "assistant", "content": text.text}
        return
    said = [block for block in blocks if type(block) is Text or type(block) is Refusal]
    calls = [_call(block) | _signed(next(signatures, "")) for block in blocks if type(block) is ToolCall]
    thought = "".join(block.text for block in blocks if type(block) is Reasoning and block.issuer is None)
    if not said and not calls:
        return
    message["content"] = _parts(said) if said else None
    if thought:
        message["reasoning_content"] = thought
    if turn.name:
        message["name"] = turn.name
    if calls:
        message["tool_calls"] = calls
    yield message


def _user(turn: Turn) -> Iterator[Json]:
    """Results first, each a message of its own; what a result shows beside text follows them as the user's."""
    yield from _results(turn.blocks)
    rest = [*_shown(turn.blocks), *[block for block in turn.blocks if type(block) is not ToolResult]]
    if rest or not turn.blocks:
        yield {"role": "user", "content": _parts(rest)} | ({"name": turn.name} if turn.name else {})


def _results(blocks: Iterable[Block]) -> Iterator[Json]:
    for block in blocks:
        if type(block) is ToolResult:
            text = Text(result_text(block), _mark_of(block))
            yield {
                "role": "tool",
                "tool_call_id": block.id,
                "content": text.text if text.cache is None else [_part(text)],
            }


def _mark_of(result: ToolResult) -> CacheMark | None:
    """Its own, or that of what it shows last."""
    return result.cache or (getattr(result.content[-1], "cache", None) if result.content else None)


def _shown(blocks: Iterable[Block]) -> list[Block]:
    """What results have beside text."""
    results = [block for block in blocks if type(block) is ToolResult]
    return [inner for result in results for inner in result.content if not _is_words(inner)]


def result_text(result: ToolResult) -> str:
    """All the text of a tool's result."""
    return "\n".join([_words(block) for block in result.content if _is_words(block)])


def _is_words(block: Block) -> bool:
    return type(block) is Text or (type(block) is File and bool(block.text))


def _words(block: Block) -> str:
    """A text, or a document that is one, with its name."""
    if type(block) is File:
        return f"{block.name}\n{block.text}" if block.name else block.text
    return block.text if type(block) is Text else ""


def _call(call: ToolCall) -> Json:
    if call.is_free_form:
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.arguments}}
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}}


def _signed(signature: str) -> Json:
    return {"extra_content": {"google": {"thought_signature": signature}}} if signature else {}


def _parts(blocks: Sequence[Block]) -> str | list[Json]:
    if not blocks:
        return ""
    if len(blocks) == 1 and type(text := blocks[0]) is Text and text.cache is None:
        return text.text
    return [_part(block) for block in blocks]


def _part(block: Block) -> Json:
    match block:
        case Text():
            text = {"type": "text", "text": block.text}
            return text if block.cache is None else text | BREAKPOINT
        case Refusal():
            return {"type": "refusal", "refusal": block.text}
        case Image():
            image = {"url": media.to_url(block.source)} | ({"detail": block.detail} if block.detail else {})
            return {"type": "image_url", "image_url": image}
        case Audio():
            kind = media.audio_format(block.source.mime)
            return {"type": "input_audio", "input_audio": {"data": block.source.data, "format": kind}}
        case File() if block.text:
            return {"type": "text", "text": _words(block)}
        case File():
            return {"type": "file", "file": {"filename": block.name or "file", "file_data": media.to_url(block.source)}}
        case _:
            raise AssertionError(f"{type(block).__name__} does not stand among parts")
