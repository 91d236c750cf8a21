"""A whole Chat Completions answer, read and written."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from hashlib import blake2b
from typing import Any, Final

from msgspec.structs import replace

from kinference.shapes import citations, made_images
from kinference.shapes.answers import Answer, Counts, Failed, Finish, Frame, NoAnswer
from kinference.shapes.failures import failure_in
from kinference.shapes.ir import Block, Image, Json, Reasoning, Refusal, Sealed, Text, ToolCall, Unread
from kinference.shapes.json_text import dumps
from kinference.shapes.logprobs import Logprobs, of_openai, to_chat
from kinference.shapes.seals import own_or_sealed
from kinference.shapes.tiers import tier_of
from kinference.shapes.usage import TOKENS_MAX
from kinference.vocabulary import Api

_FINISHES: Final[Mapping[object, Finish]] = {
    **dict.fromkeys(("length", "model_length", "max_tokens"), Finish.LENGTH),
    **dict.fromkeys(("tool_calls", "function_call", "tool_use"), Finish.TOOLS),
    **dict.fromkeys(("content_filter", "content_filtered", "safety", "refusal"), Finish.REFUSAL),
}
"""As OpenAI calls it, and as others do that speak its API."""
ENCRYPTED: Final = Unread("reasoning.encrypted")
_USUAL: Final = frozenset([Text, ToolCall])
_GAVE_UP: Final = ("error", "abort", "insufficient_system_resource")
"""What others call it when the server failed in the middle."""
_WRITTEN: Final = ("completion_tokens", "output_tokens")
_CACHED: Final = ("prompt_cache_hit_tokens", "cached_tokens")
"""Where some servers of this API have what OpenAI has in the details."""
_REASONS: Final = {Finish.LENGTH: "length", Finish.TOOLS: "tool_calls", Finish.REFUSAL: "content_filter"}


def finish_of(reason: object, *, calls: bool) -> Finish:
    """Why it ended; engines say `stop` also where they were made to call a tool."""
    finish = _FINISHES.get(reason, Finish.STOP) if isinstance(reason, str) else Finish.STOP
    return Finish.TOOLS if calls and finish is Finish.STOP else finish


def gave_up(reason: object) -> bool:
    """Whether the answer ended because its server failed."""
    return reason in _GAVE_UP


def given_up(choice: Json) -> Failed:
    """What is said of that."""
    if isinstance(choice.get("error"), dict):
        return failure_in(choice)
    return Failed(f"the destination gave up within its answer: {choice.get('finish_reason')}")


def reason_of(finish: Finish) -> str:
    """What Chat calls it."""
    return _REASONS.get(finish, "stop")


def call_id(answer_id: str, number: int) -> str:
    """An id for a call that came without one: the same for the same call of the same answer."""
    return f"call_{blake2b(f'{answer_id}:{number}'.encode(), digest_size=12).hexdigest()}"


# --- reading ----------------------------------------------------------------------------------------


def parse_answer(body: Json) -> Answer:
    """Read an answer; whatever is not as it should be is passed over. Raises NoAnswer where its server gave up."""
    choices = body.get("choices")
    given = [choice for choice in (choices if isinstance(choices, list) else ()) if isinstance(choice, dict)]
    first, *others = (_choice(choice, text_in(body, "id")) for choice in (given or [{}]))
    return replace(
        first,
        id=text_in(body, "id"),
        model=text_in(body, "model"),
        counts=counts_of(body.get("usage"), body.get("service_tier")),
        others=tuple(others),
    )


def _choice(choice: Json, answer_id: str) -> Answer:
    if gave_up(choice.get("finish_reason")):
        raise NoAnswer(given_up(choice).message)
    probable = choice.get("logprobs")
    logprobs = of_openai(probable.get("content")) if isinstance(probable, dict) else ()
    message = _object(choice.get("message"))
    blocks = tuple(_blocks(message, answer_id, logprobs))
    if blocks and loses_thoughts(message):
        blocks = (*blocks, ENCRYPTED)
    calls = any(isinstance(block, ToolCall) for block in blocks)
    cited = citations.of_openai(message.get("annotations"))
    return Answer(blocks=blocks, finish=finish_of(choice.get("finish_reason"), calls=calls), citations=cited)


def text_in(members: Json, *names: str) -> str:
    """The first of the members that is a string and not empty; "" when none is."""
    for name in names:
        value = members.get(name)
        if value and type(value) is str:
            return value
    return ""


def said_in(content: object) -> tuple[str, str]:
    """What was thought and what was said, of content that is text or, as some providers have it, parts."""
    if isinstance(content, str):
        return "", content
    parts = [part for part in (content if isinstance(content, list) else ()) if isinstance(part, dict)]
    thoughts = [inner for part in parts if isinstance(part.get("thinking"), list) for inner in part["thinking"]]
    thought = "".join(text_in(inner, "text") for inner in thoughts if isinstance(inner, dict))
    return thought, "".join(text_in(part, "text") for part in parts)


def thought_in(message: Json) -> str:
    """What was thought, of a message or a delta, under any of the names that it has."""
    if thought := text_in(message, "reasoning_content", "reasoning"):
        return thought
    for name in ("reasoning_details", "thinking_blocks"):
        blocks = message.get(name)
        parts = (part for part in (blocks if isinstance(blocks, list) else ()) if isinstance(part, dict))
        if thought := "".join(text_in(part, "text", "summary", "thinking") for part in parts):
            return thought
    return ""


def loses_thoughts(message: Json) -> bool:
    """Whether a message or a delta has thoughts that only their issuer can read, as OpenRouter tells them: whose they
    are it does not say.
    """
    details = message.get("reasoning_details")
    if not isinstance(details, list):
        return False
    return any(isinstance(one, dict) and one.get("type") == ENCRYPTED.kind for one in details)


def _blocks(message: Json, answer_id: str, logprobs: Logprobs) -> Iterator[Block]:
    parted, text = said_in(message.get("content"))
    if thought := thought_in(message) or parted:
        yield Reasoning(thought)
    if text:
        yield Text(text, logprobs=logprobs)
    yield from made_images.of_chat(message.get("images"))
    if refusal := text_in(message, "refusal"):
        yield Refusal(refusal)
    if isinstance(message.get("audio"), dict):
        yield Unread("audio")
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        calls = [{"function": message["function_call"]}] if isinstance(message.get("function_call"), dict) else []
    for number, call in enumerate(calls):
        if isinstance(call, dict):
            if signature := geminis_signature(call):
                yield Sealed(signature, Api.GEMINI)
            yield _call(call, call_id(answer_id, number))


def _call(call: Json, fallback: str) -> ToolCall:
    custom = call.get("custom")
    if isinstance(custom, dict):
        name, text = text_in(custom, "name"), text_in(custom, "input")
        return ToolCall(text_in(call, "id") or fallback, name, text, is_free_form=True)
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    return ToolCall(text_in(call, "id") or fallback, text_in(function, "name"), arguments_of(function.get("arguments")))


def geminis_signature(call: Json) -> str:
    """What Gemini gives with a call where it speaks this API, in its own place or where gateways before it put it; ""
    where there is none.
    """
    extra, function = _object(_object(call.get("extra_content")).get("google")), _object(call.get("function"))
    places = (extra, call, function, _object(call.get("provider_specific_fields")))
    return next((found for place in places if (found := text_in(place, "thought_signature"))), "")


def arguments_of(value: object) -> str:
    """The arguments as text, also where an engine gave them as an object."""
    if value is None:
        return ""
    return value if isinstance(value, str) else dumps(value).decode()


def counts_of(usage: object, service_tier: object = None) -> Counts:
    """The usage of either OpenAI API, and the tier that stands beside it."""
    tier = tier_of(Api.OPENAI_CHAT, service_tier)
    if not isinstance(usage, dict):
        return Counts(tier=tier)
    prompt = _object(usage.get("prompt_tokens_details") or usage.get("input_tokens_details"))
    completion = _object(usage.get("completion_tokens_details") or usage.get("output_tokens_details"))
    asked, written = count_in(usage, "prompt_tokens", "input_tokens"), count_in(usage, *_WRITTEN)
    reasoning = count_in(completion, "reasoning_tokens")
    if asked and written is not None and reasoning and count_in(usage, "total_tokens") == asked + written + reasoning:
        written += reasoning  # some count what was thought beside what was said, as nothing but their total tells
    cached = count_in(prompt, "cached_tokens")
    return Counts(
        prompt=asked,
        completion=written,
        cached=count_in(usage, *_CACHED) if cached is None else cached,
        cache_written=count_in(prompt, "cache_write_tokens"),
        reasoning=reasoning,
        tier=tier,
    )


def count_in(members: Json, *names: str) -> int | None:
    """The first of the members that is a number; 0 is one."""
    for name in names:
        value = members.get(name)
        if type(value) is int and 0 <= value <= TOKENS_MAX:  # as most are
            return value
        if type(value) is int or type(value) is Decimal:
            return int(max(0, min(value, TOKENS_MAX)))
    return None


def key_in(members: Json, name: str) -> int | None:
    """The member as an index to tell things apart by; None when it is none."""
    value = members.get(name)
    return value if isinstance(value, int) else None


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


# --- writing ----------------------------------------------------------------------------------------


def emit_answer(answer: Answer, frame: Frame) -> Json:
    """The body."""
    body: Json = {
        "id": answer.id or f"chatcmpl-{frame.id}",
        "object": "chat.completion",
        "created": frame.created,
        "model": answer.model,
        "choices": [_written_choice(one, at) for at, one in enumerate((answer, *answer.others))],
    }
    if not answer.counts.is_unknown:
        body["usage"] = usage_of(answer.counts)
    return body | ({} if answer.counts.tier is None else {"service_tier": answer.counts.tier})


def _written_choice(answer: Answer, index: int) -> Json:
    return {
        "index": index,
        "message": _message(answer),
        "logprobs": to_chat(logprobs_of(answer.blocks)),
        "finish_reason": reason_of(answer.finish),
    }


def logprobs_of(blocks: tuple[Block, ...]) -> Logprobs:
    """Those of all the text."""
    return tuple([entry for block in blocks if type(block) is Text for entry in block.logprobs])


def _message(answer: Answer) -> Json:
    blocks = answer.blocks
    text = "".join([block.text for block in blocks if type(block) is Text])
    calls = [_written(block) for block in blocks if type(block) is ToolCall]
    message: Json = {"role": "assistant", "content": text or (None if calls else ""), "refusal": None}
    if not _USUAL.issuperset(map(type, blocks)):
        message |= dict(_beside(blocks))
    if answer.citations:
        message["annotations"] = citations.to_chat(answer.citations)
    if calls:
        message["tool_calls"] = calls
    return message


def _beside(blocks: tuple[Block, ...]) -> Iterator[tuple[str, Any]]:
    """The members that tell of what is neither words nor calls."""
    if refusal := "".join(block.text for block in blocks if isinstance(block, Refusal)):
        yield "refusal", refusal
    if thought := "".join(block.text for block in blocks if isinstance(block, Reasoning)):
        yield "reasoning_content", thought
        yield "reasoning", thought  # clients read the one or the other
    thoughts = (block for block in blocks if isinstance(block, Reasoning | Sealed) and block.issuer is not None)
    if signed := [signed_block(block) for block in thoughts]:
        yield "thinking_blocks", signed
    if images := [block for block in blocks if isinstance(block, Image)]:
        yield "images", made_images.to_chat(images)


def signed_block(block: Reasoning | Sealed) -> Json:
    """A thought as clients keep it for its issuer."""
    signature = own_or_sealed(block, Api.ANTHROPIC_MESSAGES)
    if isinstance(block, Sealed):
        return {"type": "redacted_thinking", "data": signature}
    return {"type": "thinking", "thinking": block.text, "signature": signature}


def _written(call: ToolCall) -> Json:
    if call.is_free_form:
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.arguments}}
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}}


def usage_of(counts: Counts) -> Json:
    """The usage object."""
    prompt, completion = counts.prompt or 0, counts.completion or 0
    usage: Json = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    details = {"cached_tokens": counts.cached, "cache_write_tokens": counts.cache_written}
    if given := {name: count for name, count in details.items() if count is not None}:
        usage["prompt_tokens_details"] = given
    if counts.reasoning is not None:
        usage["completion_tokens_details"] = {"reasoning_tokens": counts.reasoning}
    return usage
