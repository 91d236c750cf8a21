"""A request written as a Responses body. The conversation comes last, so that turn N begins turn N+1."""

from collections.abc import Iterator, Sequence
from typing import Final

from kinference.shapes import mcp, mcp_calls, media
from kinference.shapes.code_execution import RESPONSES_OUTPUTS, RESPONSES_TOOL
from kinference.shapes.ir import (
    ASSISTANT,
    SYSTEM,
    USER,
    Block,
    Effort,
    File,
    Format,
    FormatKind,
    Image,
    Json,
    Reasoning,
    Refusal,
    Request,
    Role,
    Sealed,
    ServerCall,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Turn,
)
from kinference.shapes.lost import Untranslatable
from kinference.shapes.made_images import TOOL
from kinference.shapes.openai_chat.emit import BREAKPOINT, identity, said, sampling, schema_members
from kinference.shapes.openai_responses.request import LOGPROBS
from kinference.shapes.reasoners import reasons
from kinference.shapes.web_search import to_responses

_THOUGHTS: Final = "reasoning.encrypted_content"
_ITEMS = (ToolCall, ToolResult, Reasoning, Sealed, ServerCall)
_ROLES: Final = {USER: "user", ASSISTANT: "assistant", SYSTEM: "developer"}


def emit_request(request: Request) -> Json:
    """The body."""
    body: Json = {"model": request.model}
    if _is_instructions(request):
        body["instructions"] = request.system[0].text
    tools = [_tool(tool) for tool in request.tools]
    if request.web_search is not None:
        tools.append(to_responses(request.web_search))
    if request.runs_code:
        tools.append({"type": RESPONSES_TOOL, "container": {"type": "auto"}})
    tools += map(mcp.to_responses, request.mcp)
    if request.wants_images:
        tools.append({"type": TOOL})
    if tools:
        body["tools"] = tools
        if request.tool_choice is not None:
            body["tool_choice"] = _choice(request.tool_choice)
        if request.parallel_tools is not None:
            body["parallel_tool_calls"] = request.parallel_tools
    if request.max_tokens is not None:
        body["max_output_tokens"] = request.max_tokens
    body |= sampling(request.sampling, ("temperature", "top_p"))
    body |= _thinking(request)
    body |= _text(request)
    if include := list(_included(request)):
        body["include"] = include
    if request.logprobs:
        body["top_logprobs"] = request.logprobs
    body |= identity(request)
    body["store"] = False  # nobody could ask for it again
    if request.is_streaming:
        body["stream"] = True
    body["input"] = said(_input(request))
    return body


def _is_instructions(request: Request) -> bool:
    """Whether the system text is one, which nobody has marked and something follows."""
    return len(request.system) == 1 and bool(request.turns) and request.system[0].cache is None


def _tool(tool: Tool) -> Json:
    described = {"name": tool.name} | ({"description": tool.description} if tool.description else {})
    if tool.is_free_form:
        if tool.grammar is None:
            return {"type": "custom", **described}
        grammar = {"type": "grammar", "syntax": tool.grammar.syntax, "definition": tool.grammar.definition}
        return {"type": "custom", **described, "format": grammar}
    schema = tool.schema or {"type": "object", "properties": {}}
    return {"type": "function", **described, "parameters": schema, "strict": tool.strict is True}


def _choice(choice: ToolChoice) -> str | Json:
    functions = [{"type": "function", "name": name} for name in choice.names]
    if functions and not choice.offered:
        return functions[0]
    if functions:
        return {"type": "allowed_tools", "mode": choice.mode.value, "tools": functions}
    return choice.mode.value


def _thinking(request: Request) -> Json:
    thinking = request.thinking
    if thinking is None:
        return {}
    shown = {"summary": "auto"} if thinking.is_shown and thinking.effort is not Effort.NONE else {}
    return {"reasoning": {"effort": thinking.effort.word, **shown}}


def _text(request: Request) -> Json:
    text: Json = {}
    if request.format is not None:
        text["format"] = _format(request.format)
    if request.verbosity:
        text["verbosity"] = request.verbosity
    return {"text": text} if text else {}


def _format(form: Format) -> Json:
    if form.kind is FormatKind.JSON_OBJECT:
        return {"type": "json_object"}
    return {"type": "json_schema", **schema_members(form)}


def _included(request: Request) -> Iterator[str]:
    """What is told on request alone. Thoughts that nobody stores have to come along, or the next turn lacks them; a
    model that does not think refuses to be asked.
    """
    if request.logprobs is not None:
        yield LOGPROBS
    if request.runs_code:
        yield RESPONSES_OUTPUTS
    thinks = reasons(request.model) if request.thinking is None else request.thinking.effort is not Effort.NONE
    if thinks:
        yield _THOUGHTS


# --- items ------------------------------------------------------------------------------------------


def _input(request: Request) -> Iterator[Json]:
    if request.system and not _is_instructions(request):
        yield _message(SYSTEM, request.system)
    for turn in request.turns:
        yield from _items(turn)


def _items(turn: Turn) -> Iterator[Json]:
    """Each call, result and thought is an item of its own, in order but for results, which come first; what stands
    between them is one message.
    """
    if not turn.blocks and turn.role is USER:
        yield _message(USER, (Text(""),))
    said: list[Block] = []
    for block in sorted(turn.blocks, key=lambda block: type(block) is not ToolResult):
        if type(block) is Text or not isinstance(block, _ITEMS):
            said.append(block)
            continue
        if said:
            yield _message(turn.role, said)
            said = []
        yield _item(block)
    if said:
        yield _message(turn.role, said)


def _item(block: ToolCall | ToolResult | Reasoning | Sealed | ServerCall) -> Json:
    if isinstance(block, ToolCall):
        return _call(block)
    if isinstance(block, ToolResult):
        return _result(block)
    if isinstance(block, ServerCall):
        return mcp_calls.to_responses(mcp_calls.item_id(block, ""), block)
    if isinstance(block, Sealed):
        return {"type": "reasoning", "summary": [], "encrypted_content": block.data}
    summary = [{"type": "summary_text", "text": block.text}]
    return {"type": "reasoning", "summary": summary, "encrypted_content": block.signature}


def _message(role: Role, blocks: Sequence[Block]) -> Json:
    """What was said. Parts of the assistant's own belong to items that a provider holds: one text goes without them."""
    if role is ASSISTANT and len(blocks) == 1 and type(blocks[0]) is Text:
        return {"type": "message", "role": _ROLES[role], "content": blocks[0].text}
    parts = [_part(block, is_said=role is ASSISTANT) for block in blocks]
    return {"type": "message", "role": _ROLES[role], "content": parts}


def _call(call: ToolCall) -> Json:
    if call.is_free_form:
        return {"type": "custom_tool_call", "call_id": call.id, "name": call.name, "input": call.arguments}
    return {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments or "{}"}


def _result(result: ToolResult) -> Json:
    content = result.content
    texts = [block.text for block in content if type(block) is Text]
    if result.cache is not None and len(texts) == len(content):
        output: str | list[Json] = [_part(Text("\n".join(texts), result.cache), is_said=False)]
    elif len(texts) == len(content):
        output = "\n".join(texts)
    else:
        output = [_part(block, is_said=False) for block in content]
    return {"type": "function_call_output", "call_id": result.id, "output": output}


def _part(block: Block, *, is_said: bool) -> Json:
    if type(block) is Text:  # for what most are matching takes too long
        if is_said:
            return {"type": "output_text", "text": block.text, "annotations": []}
        said = {"type": "input_text", "text": block.text}
        return said if block.cache is None else said | BREAKPOINT
    match block:
        case Refusal():
            return {"type": "refusal", "refusal": block.text}
        case Image():
            image = {"type": "input_image", "image_url": media.to_url(block.source), "detail": block.detail or "auto"}
            return image if block.cache is None else image | BREAKPOINT
        case File(text=text) if text:
            return {"type": "input_text", "text": f"{block.name}\n{text}" if block.name else text}
        case File():
            place = {"file_url": block.source.url} if block.source.url else {"file_data": media.to_url(block.source)}
            file = {"type": "input_file", "filename": block.name or "file", **place}
            return file if block.cache is None else file | BREAKPOINT
        case _:
            raise Untranslatable(f"{type(block).__name__.lower()}: a Responses destination cannot carry it")
