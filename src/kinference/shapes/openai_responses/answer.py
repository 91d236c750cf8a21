"""A whole Responses answer, read and written."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from kinference.shapes import code_execution, made_images, mcp_calls, web_search
from kinference.shapes.answers import Answer, Counts, Finish, Frame, NoAnswer
from kinference.shapes.citations import CITATIONS_MAX, Citation, held_in, to_responses
from kinference.shapes.citations import of_openai as of_openai_annotations
from kinference.shapes.ir import (
    Block,
    Executed,
    Image,
    Json,
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
from kinference.shapes.logprobs import of_openai
from kinference.shapes.openai_chat.answer import counts_of, text_in
from kinference.shapes.openai_responses import client_tools
from kinference.shapes.seals import sealed
from kinference.vocabulary import Api

ECHOED: Final = (
    "instructions",
    "max_output_tokens",
    "metadata",
    "parallel_tool_calls",
    "reasoning",
    "service_tier",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_p",
    "truncation",
    "user",
)
"""What an answer repeats of its request."""
BETWEEN_PARTS: Final = "\n"
"""Between what are parts of their own in a summary."""

_DEFAULTS: Final[Json] = {
    "instructions": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
}
_SAID: Final = ("output_text", "refusal", "")
_REASONS: Final = {
    Finish.LENGTH: "max_output_tokens",
    Finish.PAUSE: "max_output_tokens",  # there is more to come, and no word is nearer
    Finish.REFUSAL: "content_filter",
}


# --- reading ----------------------------------------------------------------------------------------


def parse_answer(body: Json) -> Answer:
    """Read an answer. Raises NoAnswer for one that failed."""
    if body.get("status") == "failed":
        error = body.get("error")
        raise NoAnswer(text_in(error, "message") if isinstance(error, dict) else "the response failed")
    output = body.get("output")
    items = [item for item in (output if isinstance(output, list) else ()) if isinstance(item, dict)]
    blocks = tuple(block for item in items for block in read_item(item))
    calls = any(isinstance(block, ToolCall) for block in blocks)
    return Answer(
        text_in(body, "id"),
        text_in(body, "model"),
        blocks,
        finish_of(body, calls=calls),
        counts=counts_of(body.get("usage"), body.get("service_tier")),
        citations=tuple(islice(_cited(items), CITATIONS_MAX)),
    )


def _cited(items: Iterable[Json]) -> Iterator[Citation]:
    said = 0
    for item in items:
        content = item.get("content") if item.get("type") == "message" else None
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict) and (text := text_in(part, "text")):
                yield from of_openai_annotations(part.get("annotations"), said)
                said += len(text)


def finish_of(body: Json, *, calls: bool) -> Finish:
    """Why it ended."""
    if body.get("status") == "incomplete":
        details = body.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        return Finish.REFUSAL if reason == "content_filter" else Finish.LENGTH
    return Finish.TOOLS if calls else Finish.STOP


def read_item(item: Json) -> Iterator[Block]:
    """The blocks of one item of output."""
    match item.get("type"):
        case "message":
            content = item.get("content")
            for part in content if isinstance(content, list) else ():
                if isinstance(part, dict) and (text := text_in(part, "text")):
                    yield Text(text, logprobs=of_openai(part.get("logprobs")))
                    yield from map(Unread, held_in(part.get("annotations")))
                elif isinstance(part, dict) and (refusal := text_in(part, "refusal")):
                    yield Refusal(refusal)
                elif isinstance(part, dict) and (kind := text_in(part, "type")) not in _SAID:
                    yield Unread(kind)
        case "function_call":
            yield ToolCall(text_in(item, "call_id", "id"), text_in(item, "name"), text_in(item, "arguments"))
        case "custom_tool_call":
            call, name = text_in(item, "call_id", "id"), text_in(item, "name")
            yield ToolCall(call, name, text_in(item, "input"), is_free_form=True)
        case "image_generation_call":
            yield from made_images.of_responses(item)
        case code_execution.RESPONSES_ITEM:
            yield code_execution.of_responses(item)
            for url in code_execution.images_of(item):
                yield from tuple(made_images.of_url(url)) or (Unread("code_interpreter_call.image"),)
        case web_search.RESPONSES_ITEM:
            yield web_search.made_of_responses(item)
        case "reasoning":
            yield from _read_thought(item)
        case str(kind):
            yield mcp_calls.of_responses(item) or Unread(kind)


def _read_thought(item: Json) -> Iterator[Block]:
    text, seal = thought_in(item), text_in(item, "encrypted_content")
    if text:
        yield Reasoning(text, seal, Api.OPENAI_RESPONSES if seal else None)
    elif seal:
        yield Sealed(seal, Api.OPENAI_RESPONSES)


def thought_in(item: Json) -> str:
    """The text of an item of reasoning."""
    parts = [part for name in ("summary", "content") for part in item.get(name) or () if isinstance(part, dict)]
    return BETWEEN_PARTS.join(text for part in parts if (text := text_in(part, "text")))


# --- writing ----------------------------------------------------------------------------------------


def emit_answer(answer: Answer, frame: Frame) -> Json:
    """The body."""
    response_id = response_id_of(answer.id, frame)
    output = list(_items(answer, response_id[5:]))
    if output and answer.finish is Finish.LENGTH:
        output[-1] = cut(output[-1])
    return (
        envelope(response_id, answer.model, frame)
        | ended(answer.finish)
        | {
            "output": output,
            "usage": usage_of(answer.counts),
        }
        | served_by(answer.counts)
    )


def _items(answer: Answer, suffix: str) -> Iterator[Json]:
    said = 0
    for at, block in enumerate(answer.blocks):
        if isinstance(block, Text):
            before, said = said, said + len(block.text)
            within = [
                to_responses(one, before) for one in answer.citations if one.place is None and before < one.end <= said
            ]
            yield message_item(f"msg_{suffix}_{at}", [text_part(block.text, block.logprobs, within)])
        elif item := _item(block, f"{suffix}_{at}"):
            yield item


def served_by(counts: Counts) -> Json:
    """The tier that it came by, in place of the one that was asked for."""
    return {} if counts.tier is None else {"service_tier": counts.tier}


def cut(item: Json) -> Json:
    """The last item of an answer that was cut by its cap."""
    return item | ({"status": "incomplete"} if "status" in item else {})


def response_id_of(upstream: str, frame: Frame) -> str:
    """The destination's own id, in the form that clients look for."""
    upstream = upstream or frame.id
    return upstream if upstream.startswith("resp_") else f"resp_{upstream}"


def envelope(response_id: str, model: str, frame: Frame) -> Json:
    """What every response object has, as of its beginning."""
    given = {name: value for name, value in frame.echo.items() if value is not None}
    text = given.get("text")
    if isinstance(text, dict):
        given["text"] = _DEFAULTS["text"] | text
    return (
        {
            "id": response_id,
            "object": "response",
            "created_at": frame.created,
            "model": model,
            "status": "in_progress",
            "error": None,
            "incomplete_details": None,
            "output": [],
            "usage": None,
            "store": False,
        }
        | _DEFAULTS
        | given
    )


def ended(finish: Finish) -> Json:
    """How it ended."""
    if reason := _REASONS.get(finish):
        return {"status": "incomplete", "incomplete_details": {"reason": reason}}
    return {"status": "completed"}


def _item(block: Block, suffix: str) -> Json | None:
    match block:
        case Refusal():
            return message_item(f"msg_{suffix}", [{"type": "refusal", "refusal": block.text}])
        case Image():
            return made_images.to_responses(f"ig_{suffix}", block)
        case Executed():
            return code_execution.to_responses(f"ci_{suffix}", block)
        case Searched() if block.queries:
            return web_search.made_to_responses(f"ws_{suffix}", block)
        case ServerCall():
            return mcp_calls.to_responses(mcp_calls.item_id(block, suffix), block)
        case ServerTools():
            return mcp_calls.listing_to_responses(f"mcpl_{suffix}", block)
        case ToolCall():
            return call_item(f"fc_{suffix}", block)
        case Reasoning() | Sealed():
            return reasoning_item(f"rs_{suffix}", block)
        case _:
            return None


def text_part(text: str, logprobs: Iterable[Json] = (), annotations: Iterable[Json] = ()) -> Json:
    """A part of text."""
    return {"type": "output_text", "text": text, "annotations": list(annotations), "logprobs": list(logprobs)}


def message_item(item_id: str, content: list[Json], status: str = "completed") -> Json:
    """An item of what was said."""
    return {"id": item_id, "type": "message", "role": "assistant", "status": status, "content": content}


_COMING: Final = "in_progress"


def call_item(item_id: str, call: ToolCall, status: str = "completed") -> Json:
    """An item of what was called."""
    if call.form:
        return client_tools.call_item(item_id, call, status)
    item: Json = {"id": item_id, "call_id": call.id, "name": call.name}
    item |= {"namespace": call.namespace} if call.namespace else {}
    if call.is_free_form:
        return {"type": "custom_tool_call", **item, "input": call.arguments}
    arguments = call.arguments or ("" if status == _COMING else "{}")  # which clients decode
    return {"type": "function_call", **item, "arguments": arguments, "status": status}


def reasoning_item(item_id: str, thought: Reasoning | Sealed) -> Json:
    """An item of what was thought, with the seal that its issuer wants back."""
    text = thought.text if isinstance(thought, Reasoning) else ""
    summary: list[Any] = [{"type": "summary_text", "text": text}] if text else []
    seal = sealed(thought)
    item: Json = {"id": item_id, "type": "reasoning", "summary": summary}
    return item | ({"encrypted_content": seal} if seal else {})


def usage_of(counts: Counts) -> Json:
    """The usage object, all its details in it."""
    prompt, completion = counts.prompt or 0, counts.completion or 0
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": counts.cached or 0, "cache_write_tokens": counts.cache_written or 0},
        "output_tokens": completion,
        "output_tokens_details": {"reasoning_tokens": counts.reasoning or 0},
        "total_tokens": prompt + completion,
    }
