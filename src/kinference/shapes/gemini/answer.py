"""A whole generateContent answer, read and written."""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from kinference.shapes import citations, code_execution
from kinference.shapes.answers import Answer, Counts, Finish, Frame
from kinference.shapes.gemini.embed import parse_embeddings, parse_predictions
from kinference.shapes.ir import Block, Executed, Image, Json, Reasoning, Refusal, Sealed, Text, ToolCall, Unread
from kinference.shapes.json_text import dumps, loads, object_text
from kinference.shapes.logprobs import of_gemini, to_gemini
from kinference.shapes.made_images import of_gemini as of_gemini_image
from kinference.shapes.openai_chat.answer import call_id, count_in, logprobs_of, text_in
from kinference.shapes.seals import in_base64, sealed
from kinference.shapes.tiers import tier_of, tier_to
from kinference.vocabulary import Api

_FINISHES: Final[Mapping[str, Finish]] = {
    "MAX_TOKENS": Finish.LENGTH,
    "CONTINUATION": Finish.PAUSE,
    **dict.fromkeys(
        (
            "SAFETY",
            "BLOCKLIST",
            "PROHIBITED_CONTENT",
            "SPII",
            "IMAGE_SAFETY",
            "IMAGE_PROHIBITED_CONTENT",
            "IMAGE_RECITATION",
            "IMAGE_OTHER",
            "RECITATION",
            "LANGUAGE",
            "OTHER",
            "MODEL_ARMOR",
        ),
        Finish.REFUSAL,
    ),
}
_OWN: Final = ("inlineData", "fileData", "toolCall", "toolResponse")
"""What a part may hold that no other API has a form for."""
_UNKEPT: Final = Unread("thoughtSignature")
"""What Google signs beside its calls, which other APIs have no place for that it comes back from."""
_FAILURES: Final = (
    *("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE"),
    *("MISSING_THOUGHT_SIGNATURE", "TOO_MANY_TOOL_CALLS", "NO_IMAGE"),
)
"""Why an answer ended whose call, or whose image, came to nothing."""
_REASONS: Final = {Finish.LENGTH: "MAX_TOKENS", Finish.REFUSAL: "SAFETY"}


def finish_of(reason: object, *, calls: bool) -> Finish:
    """Why it ended; only a plain stop becomes the end of calling."""
    finish = _FINISHES.get(reason, Finish.STOP) if isinstance(reason, str) else Finish.STOP
    return Finish.TOOLS if calls and finish is Finish.STOP else finish


def reason_of(finish: Finish, *, declines: bool = False) -> str:
    """What Gemini calls it: an answer that declines has no other end, however plainly it ended elsewhere."""
    return _REASONS.get(Finish.REFUSAL if declines and finish is Finish.STOP else finish, "STOP")


# --- reading ----------------------------------------------------------------------------------------


def parse_answer(body: Json) -> Answer:
    """Read an answer; what is not as it should be is passed over."""
    if isinstance(body.get("embeddings"), list):
        return parse_embeddings(body["embeddings"])
    if isinstance(body.get("predictions"), list):
        return parse_predictions(body["predictions"])
    answer_id = text_in(body, "responseId")
    candidates = body.get("candidates")
    given = [one for one in (candidates if isinstance(candidates, list) else ()) if isinstance(one, dict)]
    first, *others = (_read(candidate, answer_id) for candidate in (given or [{}]))
    return replace(
        first,
        blocks=(*first.blocks, *why_blocked(body)),
        id=answer_id,
        model=text_in(body, "modelVersion"),
        finish=Finish.REFUSAL if is_blocked(body) else first.finish,
        counts=counts_of(body.get("usageMetadata")),
        others=tuple(others),
    )


def _read(candidate: Json, answer_id: str) -> Answer:
    blocks = tuple(code_execution.joined(blocks_of(candidate, answer_id, 0)))
    if blocks == (_UNKEPT,):  # nothing is said by that alone
        blocks = ()
    calls = any(isinstance(block, ToolCall) for block in blocks)
    text = "".join(block.text for block in blocks if isinstance(block, Text))
    finish = finish_of(candidate.get("finishReason"), calls=calls)
    return Answer(blocks=blocks, finish=finish, citations=citations.of_gemini(candidate, text))


def candidate_of(body: Json) -> Json:
    """The first candidate; an empty one when there is none."""
    candidates = body.get("candidates")
    given = (one for one in (candidates if isinstance(candidates, list) else ()) if isinstance(one, dict))
    return next((one for one in given if not one.get("index")), {})


def is_blocked(body: Json) -> bool:
    """Whether the prompt itself was refused."""
    feedback = body.get("promptFeedback")
    return isinstance(feedback, dict) and bool(feedback.get("blockReason"))


def why_blocked(body: Json) -> Iterator[Refusal]:
    """What is said of why the prompt was refused."""
    feedback = body.get("promptFeedback")
    if isinstance(feedback, dict) and (reason := text_in(feedback, "blockReasonMessage")):
        yield Refusal(reason)


def blocks_of(candidate: Json, answer_id: str, calls: int) -> Iterator[Block]:
    """The blocks of a candidate, of whose answer so many calls have come before."""
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    logprobs = of_gemini(candidate.get("logprobsResult"))
    loses_signature = False
    for part in parts if isinstance(parts, list) else ():
        if not isinstance(part, dict):
            continue
        call, text = part.get("functionCall"), text_in(part, "text")
        if isinstance(call, dict):
            if signature := text_in(part, "thoughtSignature"):
                yield Sealed(signature, Api.GEMINI)
            arguments = dumps(call.get("args") or {}).decode()
            yield ToolCall(text_in(call, "id") or call_id(answer_id, calls), text_in(call, "name"), arguments)
            calls += 1
            continue
        loses_signature = loses_signature or bool(text_in(part, "thoughtSignature"))
        if ran := code_execution.of_gemini(part):
            yield ran
        elif images := tuple(of_gemini_image(part.get("inlineData"))):
            yield from images
        elif text:
            if part.get("thought") is True:
                yield Reasoning(text)
            else:
                yield Text(text, logprobs=logprobs)
                logprobs = ()
        else:
            yield from (Unread(kind) for kind in _OWN if part.get(kind))
    if loses_signature:
        yield _UNKEPT
    if (reason := candidate.get("finishReason")) in _FAILURES:
        yield Unread(reason)


def counts_of(usage: object) -> Counts:
    """The usage, whose candidates leave out the thoughts."""
    if not isinstance(usage, dict):
        return Counts()
    prompt, candidates = count_in(usage, "promptTokenCount"), count_in(usage, "candidatesTokenCount")
    thoughts = count_in(usage, "thoughtsTokenCount")
    is_written = candidates is not None or thoughts is not None
    return Counts(
        prompt=None if prompt is None else prompt + (count_in(usage, "toolUsePromptTokenCount") or 0),
        completion=(candidates or 0) + (thoughts or 0) if is_written else None,
        cached=count_in(usage, "cachedContentTokenCount"),
        reasoning=thoughts,
        tier=tier_of(Api.GEMINI, usage.get("trafficType") or usage.get("serviceTier")),
    )


# --- writing ----------------------------------------------------------------------------------------


def emit_answer(answer: Answer, frame: Frame) -> Json:
    """The body."""
    body: Json = {
        "candidates": [_written(one, at) for at, one in enumerate((answer, *answer.others))],
        "modelVersion": answer.model,
        "responseId": answer.id or frame.id,
    }
    return body if answer.counts == Counts() else body | {"usageMetadata": usage_of(answer.counts)}


def _written(answer: Answer, index: int) -> Json:
    whole = (block for block in answer.blocks if not is_cut(block, answer.finish))
    parts = [part for block in whole for part in parts_of(block)]
    candidate: Json = {"content": {"role": "model", "parts": parts}, "index": index}
    logprobs = logprobs_of(answer.blocks)
    probable = {"logprobsResult": to_gemini(logprobs)} if logprobs else {}
    if any(citation.place is None for citation in answer.citations):
        text = "".join(block.text for block in answer.blocks if isinstance(block, Text))
        candidate["groundingMetadata"] = citations.to_gemini(answer.citations, text)
    declines = any(isinstance(block, Refusal) for block in answer.blocks)
    return candidate | {"finishReason": reason_of(answer.finish, declines=declines)} | probable


def response(parts: list[Json], reason: str | None) -> Json:
    """A response with one candidate."""
    candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
    return {"candidates": [candidate | ({"finishReason": reason} if reason else {})]}


def is_cut(block: Block, finish: Finish) -> bool:
    """Whether a call broke off in the middle: nobody could make it."""
    return finish is Finish.LENGTH and isinstance(block, ToolCall) and object_text(block.arguments) is None


def parts_of(block: Block) -> Iterator[Json]:
    """One block as parts."""
    if isinstance(block, Executed):
        yield from code_execution.to_gemini(block)
    elif part := part_of(block):
        yield part


def part_of(block: Block) -> Json | None:
    """One block as a part. Thoughts that another signed carry its seal as Google's own carry theirs."""
    match block:
        case Text() | Refusal():
            return {"text": block.text}
        case Image():
            return {"inlineData": {"mimeType": block.source.mime, "data": block.source.data}}
        case Reasoning():
            return {"text": block.text, "thought": True} | _signature(block)
        case Sealed():
            return {"text": "", "thought": True} | _signature(block)
        case ToolCall():
            text = object_text(block.arguments)
            given = loads(text) if text is not None else {"_raw": block.arguments}  # on one line, whatever it was
            return {"functionCall": {"id": block.id, "name": block.name, "args": given}}
        case _:
            return None


def _signature(thought: Reasoning | Sealed) -> Json:
    seal = sealed(thought)
    return {"thoughtSignature": in_base64(seal)} if seal else {}


def usage_of(counts: Counts) -> Json:
    """The usage object."""
    prompt, completion, thoughts = counts.prompt or 0, counts.completion or 0, counts.reasoning or 0
    usage: Json = {
        "promptTokenCount": prompt,
        "candidatesTokenCount": max(0, completion - thoughts),
        "totalTokenCount": prompt + completion,
    }
    if counts.cached is not None:
        usage["cachedContentTokenCount"] = counts.cached
    if (tier := tier_to(Api.GEMINI, counts.tier)) is not None:
        usage["trafficType"] = tier
    return usage | ({"thoughtsTokenCount": thoughts} if thoughts else {})
