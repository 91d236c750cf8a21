"""A whole Messages answer, read and written."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

import msgspec

from kinference.shapes import code_execution, mcp_calls
from kinference.shapes.answers import Answer, Counts, Finish, Frame
from kinference.shapes.citations import CITATIONS_MAX, Citation, of_messages, stretches, to_messages
from kinference.shapes.code_execution import joined
from kinference.shapes.ir import Block, Executed, Json, Reasoning, Refusal, Sealed, ServerCall, Text, ToolCall, Unread
from kinference.shapes.json_text import dumps, object_text
from kinference.shapes.openai_chat.answer import count_in, text_in
from kinference.shapes.seals import own_or_sealed
from kinference.shapes.tiers import tier_of, tier_to
from kinference.shapes.web_search import made_of_messages
from kinference.vocabulary import Api

_FINISHES: Final[Mapping[object, Finish]] = {
    "stop_sequence": Finish.STOP_SEQUENCE,
    "max_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "tool_use": Finish.TOOLS,
    "pause_turn": Finish.PAUSE,
    "refusal": Finish.REFUSAL,
}
_REASONS: Final = {
    Finish.STOP: "end_turn",
    Finish.STOP_SEQUENCE: "stop_sequence",
    Finish.LENGTH: "max_tokens",
    Finish.TOOLS: "tool_use",
    Finish.PAUSE: "pause_turn",
    Finish.REFUSAL: "refusal",
}


def finish_of(reason: object) -> Finish:
    """Why it ended."""
    return _FINISHES.get(reason, Finish.STOP) if isinstance(reason, str) else Finish.STOP


def reason_of(finish: Finish, *, declines: bool = False) -> str:
    """What Messages calls it: an answer that declines has no other end, however plainly it ended elsewhere."""
    return _REASONS[Finish.REFUSAL if declines and finish is Finish.STOP else finish]


# --- reading ----------------------------------------------------------------------------------------


def parse_answer(body: Json) -> Answer:
    """Read an answer; what is not as it should be is passed over."""
    content = body.get("content")
    given = [block for block in (content if isinstance(content, list) else ()) if isinstance(block, dict)]
    blocks = joined(read for block in given for read in _read(block))
    return Answer(
        text_in(body, "id"),
        text_in(body, "model"),
        (*blocks, *declined(body.get("stop_details"))),
        finish_of(body.get("stop_reason")),
        text_in(body, "stop_sequence"),
        counts_of(body.get("usage")),
        tuple(islice(_cited(given), CITATIONS_MAX)),
    )


def declined(details: object) -> Iterator[Refusal]:
    """Why the model declined, where it says so."""
    if isinstance(details, dict) and (reason := text_in(details, "explanation")):
        yield Refusal(reason)


def _cited(blocks: Iterable[Json]) -> Iterator[Citation]:
    said = 0
    for block in blocks:
        if block.get("type") == "text":
            before, said = said, said + len(text_in(block, "text"))
            yield from of_messages(block.get("citations"), before, said)


def _read(block: Json) -> Iterator[Block]:
    match block.get("type"):
        case "text":
            if text := text_in(block, "text"):
                yield Text(text)
        case "thinking":
            signature = text_in(block, "signature")
            issuer = Api.ANTHROPIC_MESSAGES if signature else None
            yield Reasoning(text_in(block, "thinking"), signature, issuer)
        case "redacted_thinking":
            yield Sealed(text_in(block, "data"), Api.ANTHROPIC_MESSAGES)
        case "tool_use":
            arguments = dumps(block.get("input") or {}).decode()
            yield ToolCall(text_in(block, "id"), text_in(block, "name"), arguments)
        case str(kind):
            ran = code_execution.of_messages(block) or made_of_messages(block) or mcp_calls.of_messages(block)
            yield Unread(kind) if ran is None else ran
            yield from code_execution.held_of(block) if ran is not None else ()


def counts_of(usage: object) -> Counts:
    """The usage, whose input leaves out what was read from the cache and what was written to it."""
    if not isinstance(usage, dict):
        return Counts()
    fresh = count_in(usage, "input_tokens")
    cached = count_in(usage, "cache_read_input_tokens")
    written = count_in(usage, "cache_creation_input_tokens")
    details = usage.get("output_tokens_details")
    return Counts(
        prompt=None if fresh is None else fresh + (cached or 0) + (written or 0),
        completion=count_in(usage, "output_tokens"),
        cached=cached,
        cache_written=written,
        reasoning=count_in(details, "thinking_tokens") if isinstance(details, dict) else None,
        tier=tier_of(Api.ANTHROPIC_MESSAGES, usage.get("service_tier")),
    )


# --- writing ----------------------------------------------------------------------------------------


def emit_answer(answer: Answer, frame: Frame) -> Json:
    """The body."""
    finish = answer.finish
    answer_id = message_id(answer.id, frame)
    content = list(_written(answer, answer_id, is_cut=finish is Finish.LENGTH))
    return {
        "id": answer_id,
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": content or [{"type": "text", "text": ""}],
        "stop_reason": reason_of(finish, declines=any(isinstance(block, Refusal) for block in answer.blocks)),
        "stop_sequence": answer.stop_sequence or None,
        "usage": usage_of(answer.counts) | served_by(answer.counts),
    }


def message_id(upstream: str, frame: Frame) -> str:
    """The destination's own id, in the form that clients look for."""
    upstream = upstream or frame.id
    return upstream if upstream.startswith("msg_") else f"msg_{upstream}"


def _written(answer: Answer, answer_id: str, *, is_cut: bool) -> Iterator[Json]:
    said = 0
    for at, block in enumerate(answer.blocks):
        match block:
            case Reasoning():
                signature = own_or_sealed(block, Api.ANTHROPIC_MESSAGES)
                yield {"type": "thinking", "thinking": block.text, "signature": signature}
            case Sealed():
                yield {"type": "redacted_thinking", "data": own_or_sealed(block, Api.ANTHROPIC_MESSAGES)}
            case Text() if answer.citations:
                for stretch, cited in stretches(block.text, said, answer.citations):
                    beside = {"citations": list(map(to_messages, cited))} if cited else {}
                    yield {"type": "text", "text": stretch} | beside
                said += len(block.text)
            case Text() | Refusal():
                yield {"type": "text", "text": block.text}
            case Executed():
                yield from code_execution.to_messages(block, f"{answer_id}_{at}")
            case ServerCall():
                yield from mcp_calls.to_messages(block, f"{answer_id}_{at}")
            case ToolCall():
                text = object_text(block.arguments)
                if text is None and is_cut:
                    continue  # broken off in the middle: nobody could make this call
                given = msgspec.Raw(text) if text is not None else {"_raw": block.arguments}
                yield {"type": "tool_use", "id": block.id, "name": block.name, "input": given}


def usage_of(counts: Counts) -> Json:
    """The usage object, all four counts in it."""
    cached, written = counts.cached or 0, counts.cache_written or 0
    usage: Json = {
        "input_tokens": max(0, (counts.prompt or 0) - cached - written),
        "output_tokens": counts.completion or 0,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written,
    }
    return (
        usage if counts.reasoning is None else usage | {"output_tokens_details": {"thinking_tokens": counts.reasoning}}
    )


def served_by(counts: Counts) -> Json:
    """The member of the usage that tells the tier: that of a stream's end has none."""
    tier = tier_to(Api.ANTHROPIC_MESSAGES, counts.tier)
    return {} if tier is None else {"service_tier": tier}
