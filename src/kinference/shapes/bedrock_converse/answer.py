"""A whole Converse answer, read."""

from collections.abc import Iterator, Mapping
from typing import Final

from kinference.shapes.answers import Answer, Counts, Finish
from kinference.shapes.bedrock_converse.embed import parse_embeddings
from kinference.shapes.citations import CITATIONS_MAX, Citation, of_converse
from kinference.shapes.ir import Block, Json, Reasoning, Sealed, Text, ToolCall, Unread
from kinference.shapes.json_text import dumps
from kinference.shapes.openai_chat.answer import count_in, text_in
from kinference.shapes.tiers import tier_of
from kinference.vocabulary import Api

ISSUER: Final = Api.ANTHROPIC_MESSAGES
"""Who signs thoughts here: only Claude does, and each host of Claude takes what another's has signed."""

READ: Final = ("text", "citationsContent", "toolUse", "reasoningContent", "citation")
"""What a part or a delta may hold that others have a form for."""
SERVERS: Final = "server_tool_use"
"""The type of a call that the provider makes itself."""
_FINISHES: Final[Mapping[str, Finish]] = {
    "stop_sequence": Finish.STOP_SEQUENCE,
    "max_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "tool_use": Finish.TOOLS,
    "content_filtered": Finish.REFUSAL,
    "guardrail_intervened": Finish.REFUSAL,
}


def finish_of(reason: object) -> Finish:
    """Why it ended."""
    return _FINISHES.get(reason, Finish.STOP) if isinstance(reason, str) else Finish.STOP


def failed(reason: object) -> Iterator[Unread]:
    """The reason of an end that came of a failure."""
    if reason in ("malformed_tool_use", "malformed_model_output"):
        yield Unread(str(reason))


def parse_answer(body: Json) -> Answer:
    """Read an answer; whatever is not as it should be is passed over."""
    if (embedded := parse_embeddings(body)) is not None:
        return embedded
    content = inner(inner(body, "output"), "message").get("content")
    blocks: list[Block] = []
    citations: list[Citation] = []
    said = 0
    for part in content if isinstance(content, list) else ():
        for block in _read(part) if isinstance(part, dict) else ():
            blocks.append(block)
            if isinstance(block, Text):
                before, said = said, said + len(block.text)
                citations += of_converse(inner(part, "citationsContent").get("citations"), before, said)
    return Answer(
        blocks=(*blocks, *failed(body.get("stopReason"))),
        finish=finish_of(body.get("stopReason")),
        counts=counts_of(body),
        citations=tuple(citations[:CITATIONS_MAX]),
    )


def inner(members: Json, name: str) -> Json:
    """A member that is an object; an empty one when it is none."""
    value = members.get(name)
    return value if isinstance(value, dict) else {}


def _read(part: Json) -> Iterator[Block]:
    if text := text_in(part, "text"):
        yield Text(text)
    cited = inner(part, "citationsContent").get("content")
    if text := "".join(
        text_in(one, "text") for one in (cited if isinstance(cited, list) else ()) if isinstance(one, dict)
    ):
        yield Text(text)
    if is_servers(call := inner(part, "toolUse")):
        yield Unread(SERVERS)
    elif call:
        yield ToolCall(text_in(call, "toolUseId"), text_in(call, "name"), dumps(call.get("input") or {}).decode())
    thought = inner(part, "reasoningContent")
    said = inner(thought, "reasoningText")
    text, signature = text_in(said, "text"), text_in(said, "signature")
    if text or signature:
        yield Reasoning(text, signature, ISSUER if signature else None)
    if data := text_in(thought, "redactedContent"):
        yield Sealed(data, ISSUER)
    yield from (Unread(kind) for kind in part if kind not in READ)


def is_servers(call: Json) -> bool:
    """Whether the provider makes a call itself: no client could."""
    return call.get("type") == SERVERS


def counts_of(body: Json) -> Counts:
    """The usage, whose input leaves out what was read from the cache and what was written to it, and the tier."""
    usage = inner(body, "usage")
    fresh = count_in(usage, "inputTokens")
    cached, written = count_in(usage, "cacheReadInputTokens"), count_in(usage, "cacheWriteInputTokens")
    return Counts(
        prompt=None if fresh is None else fresh + (cached or 0) + (written or 0),
        completion=count_in(usage, "outputTokens"),
        cached=cached,
        cache_written=written,
        tier=tier_of(Api.BEDROCK_CONVERSE, inner(body, "serviceTier").get("type")),
    )
