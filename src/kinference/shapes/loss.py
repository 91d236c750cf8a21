"""Fitting a request to another API: what it asks for is held against the tables, and what is lost is said."""

from collections.abc import Iterator, Set
from typing import Final

import msgspec

from kinference.shapes import mcp_calls, web_search
from kinference.shapes.alternate import answered, orphans
from kinference.shapes.bedrock_converse.embed import PURPOSE, embeds_by_cohere
from kinference.shapes.clamps import CLAUDE_APIS, OPENAI_APIS, clamp, without_neutral
from kinference.shapes.claude import begins_answers, output_cap
from kinference.shapes.code_execution import in_words
from kinference.shapes.concepts import Concept, Fields, Treatment, name_of, treatment
from kinference.shapes.ir import (
    SYSTEM,
    USER,
    Audio,
    Block,
    Executed,
    File,
    FormatKind,
    Image,
    Media,
    Reasoning,
    Request,
    Sampling,
    Sealed,
    Searched,
    ServerCall,
    ServerTools,
    Text,
    ToolCall,
    ToolMode,
    ToolResult,
    Turn,
    begins_answer,
    is_simple,
    kinds_of,
)
from kinference.shapes.lost import Lost, Untranslatable, safe
from kinference.shapes.made_images import shown_by_user
from kinference.shapes.marks import MARKS_MAX, last_marks, without_marks
from kinference.shapes.reasoners import takes_marks
from kinference.shapes.schemas import fit_schemas
from kinference.shapes.seals import is_gemini
from kinference.vocabulary import Api, Loss

MAX_TOKENS: Final = 8192
"""Asked of an API that must be told a cap, where the client named none and the model's own is not known."""
ALTERNATING: Final = (Api.ANTHROPIC_MESSAGES, Api.GEMINI, Api.BEDROCK_CONVERSE)
"""APIs that take user and assistant in turn, and every call with its result."""
_MESSAGES: Final = Api.ANTHROPIC_MESSAGES
_CONVERSE: Final = Api.BEDROCK_CONVERSE
_REFUSED: Final = Treatment.REFUSED
_NEEDED: Final = Treatment.NEEDED
_DROPPED: Final = Treatment.DROPPED
_PREFILL: Final = Concept.PREFILL
_MARKS: Final = Concept.CACHE_MARKS
"""Read once: Python 3.11 finds a member of an enum by a hook of its metaclass, at ten times the price of a constant."""
_NOTHING: Final[Set[type[Block]]] = frozenset()
_USUAL_TIERS: Final = ("", "auto", "default", "standard", "standard_only")


def fit(request: Request, fields: Fields, target: Api, loss: Loss) -> tuple[Request, tuple[Lost, ...]]:
    """The request as the target's API can carry it, and what that costs. `fields` are those of the client's API.

    Raises Untranslatable where something would change the meaning, and under STRICT for any loss.
    """
    kinds = _unusual(request)
    request = _where_shown(without_neutral(request, target), target, kinds)
    losses = [Lost("dropped", field) for field in request.extras]
    asked = dict.fromkeys(uses(request, target))
    for concept in asked:
        verdict = treatment(concept, target)
        if verdict is _REFUSED or verdict is _NEEDED:
            raise Untranslatable(f"{name_of(concept, fields)}: no destination of API {target.value} can carry it")
        if verdict is _DROPPED:
            losses += _dropped(concept, request, fields)
    if _PREFILL in asked:
        losses += _begun(request, name_of(Concept.PREFILL, fields), target)
    told = []
    if request.answers > 1 and request.is_streaming:
        raise Untranslatable(f"{name_of(Concept.SEVERAL_ANSWERS, fields)}: a stream is translated with one answer only")
    if request.max_tokens == 0:
        raise Untranslatable("max_tokens: 0 warms the cache of one API alone")
    if request.max_tokens is None and target is _MESSAGES:
        cap = output_cap(request.model) or MAX_TOKENS
        told.append(Lost("assumed", "max_tokens", str(cap)))  # no loss: the client left the choice open
        request = msgspec.structs.replace(request, max_tokens=cap)
    if request.inputs and target is Api.BEDROCK_CONVERSE and embeds_by_cohere(request.model):
        told.append(Lost("assumed", "input_type", PURPOSE))
    request, clamped = clamp(request, asked, fields, target)
    losses += clamped
    request, narrowed = fit_schemas(request, fields, target)
    losses += narrowed
    if _MARKS in asked:
        request, fewer = _marked(request, fields, target)
        losses += fewer
    if kinds & {ToolCall, ToolResult} and (mended := list(orphans(request.turns))):
        losses += (Lost("mended", "messages", safe(call)) for call in mended)
        if target not in ALTERNATING:  # those that do have it done with the rest
            request = msgspec.structs.replace(request, turns=tuple(answered(request.turns)))
    if losses and loss is Loss.STRICT:
        raise Untranslatable(f"{losses[0].place}: would be {losses[0].how} by a destination of API {target.value}")
    return _without_foreign_thoughts(request, target, kinds), (*losses, *told)


def _marked(request: Request, fields: Fields, target: Api) -> tuple[Request, list[Lost]]:
    """As many marks as the model takes."""
    if target is Api.GEMINI or (target in OPENAI_APIS and not takes_marks(request.model)):
        return without_marks(request), []
    request, had = last_marks(request)
    lost = Lost("clamped", name_of(Concept.CACHE_MARKS, fields), f"{had}->{MARKS_MAX}")
    return request, [lost] if had > MARKS_MAX else []


def _unusual(request: Request) -> Set[type[Block]]:
    """The kinds of blocks that something may have to be done about."""
    return _NOTHING if is_simple(request) else kinds_of(request.turns)


def _dropped(concept: Concept, request: Request, fields: Fields) -> list[Lost]:
    """What is told of it, by where the client asked for it: speakers have names by their roles."""
    if concept is not Concept.NAMES:
        return [Lost("dropped", name_of(concept, fields))]
    leading = (SYSTEM,) if request.is_system_named else ()
    roles = dict.fromkeys(role.value for role in (*leading, *(turn.role for turn in request.turns if turn.name)))
    return [Lost("dropped", f"{role}.name") for role in roles]


def _begun(request: Request, name: str, target: Api) -> Iterator[Lost]:
    """What it costs that the client began the answer. Raises Untranslatable."""
    if target in CLAUDE_APIS and not begins_answers(request.model):
        raise Untranslatable(f"{name}: this model begins its answers itself")
    if treatment(Concept.PREFILL, target) is Treatment.CLAMPED and not request.is_extended_chat:
        yield Lost("clamped", name, "not continued")


def _where_shown(request: Request, target: Api, kinds: Set[type[Block]]) -> Request:
    """Code that was run and searches that were made in words, as are calls of servers where they have no other form,
    and images that the assistant made in the user's turns, where the target lets the assistant show none.
    """
    if Executed in kinds:
        request = msgspec.structs.replace(request, turns=tuple(in_words(request.turns)))
    if Searched in kinds:
        request = msgspec.structs.replace(request, turns=tuple(web_search.in_words(request.turns)))
    if not kinds.isdisjoint((ServerCall, ServerTools)):
        request = msgspec.structs.replace(request, turns=tuple(mcp_calls.placed(request.turns, request.mcp, target)))
    if Image not in kinds or target is Api.GEMINI:
        return request
    return msgspec.structs.replace(request, turns=tuple(shown_by_user(request.turns)))


def _without_foreign_thoughts(request: Request, target: Api, kinds: Set[type[Block]]) -> Request:
    """Thoughts go back to their issuer alone; plain ones to those who write them plainly."""
    if kinds.isdisjoint((Reasoning, Sealed)):
        return request
    issuers = _issuers(request, target)
    turns = (msgspec.structs.replace(turn, blocks=_thought_out(turn.blocks, issuers)) for turn in request.turns)
    return msgspec.structs.replace(request, turns=tuple(turn for turn in turns if turn.blocks or turn.role is USER))


def _thought_out(blocks: tuple[Block, ...], issuers: tuple[Api | None, ...]) -> tuple[Block, ...]:
    """The blocks with thoughts of these issuers alone, and none that led to nothing: no API takes such back."""
    kept = [block for block in blocks if not isinstance(block, Reasoning | Sealed) or block.issuer in issuers]
    while kept and isinstance(kept[-1], Reasoning | Sealed):
        kept.pop()
    return tuple(kept)


def _issuers(request: Request, target: Api) -> tuple[Api | None, ...]:
    """Whose thoughts the destination takes: its own, Chat plain ones too but for OpenAI's models, and Claude on Bedrock
    what Claude signed.
    """
    if target is _CONVERSE:
        return (Api.ANTHROPIC_MESSAGES,) if "claude" in request.model else ()
    if request.is_plain_chat and target is Api.OPENAI_CHAT:
        return (target, None, Api.GEMINI) if is_gemini(request.model) else (target, None)
    return (target,)


# --- what is asked for ------------------------------------------------------------------------------


def uses(request: Request, target: Api) -> Iterator[Concept]:
    """Every concept that the request uses, some more than once."""
    if request.inputs:
        yield Concept.EMBEDDINGS
    yield from _numbers(request.sampling)
    yield from _settings(request)
    yield from _providers_own(request)
    yield from _form(request)
    yield from _tools(request)
    if any(tool.cache for tool in request.tools) or any(text.cache for text in request.system):
        yield Concept.CACHE_MARKS
    if request.is_system_named:
        yield Concept.NAMES
    if not is_simple(request):
        yield from _conversation(request.turns, _issuers(request, target))
    if begins_answer(request):
        yield Concept.PREFILL


def _conversation(turns: tuple[Turn, ...], issuers: tuple[Api | None, ...]) -> Iterator[Concept]:
    for turn in turns:
        if turn.name:
            yield Concept.NAMES
        if turn.role is SYSTEM:
            yield Concept.LATE_SYSTEM
        for block in turn.blocks:
            if type(block) is Text or type(block) is ToolCall:
                if block.cache is not None:
                    yield Concept.CACHE_MARKS
            elif type(block) is ToolResult:
                yield from _result(block, issuers)
            else:
                yield from _block(block, issuers)


def _numbers(sampling: Sampling) -> Iterator[Concept]:
    if sampling.temperature is not None:
        yield Concept.TEMPERATURE
    if sampling.top_p is not None:
        yield Concept.TOP_P
    if sampling.top_k is not None:
        yield Concept.TOP_K
    if sampling.min_p is not None:
        yield Concept.MIN_P
    if sampling.seed is not None:
        yield Concept.SEED
    if sampling.frequency_penalty or sampling.presence_penalty:
        yield Concept.PENALTIES
    if sampling.repetition_penalty is not None:
        yield Concept.REPETITION_PENALTY


def _settings(request: Request) -> Iterator[Concept]:
    if request.stop:
        yield Concept.STOP
    if request.thinking is not None:
        yield Concept.THINKING
    if request.verbosity:
        yield Concept.VERBOSITY
    if request.end_user:
        yield Concept.END_USER
    if request.service_tier not in _USUAL_TIERS:
        yield Concept.SERVICE_TIER
    if request.cache_key:
        yield Concept.CACHE_KEY
    if request.answers > 1:
        yield Concept.SEVERAL_ANSWERS


def _providers_own(request: Request) -> Iterator[Concept]:
    if request.web_search is not None and not request.web_search.is_cached:
        yield Concept.WEB_SEARCH
    if request.mcp:
        yield Concept.MCP
    if request.runs_code:
        yield Concept.CODE_EXECUTION
    if request.wants_images:
        yield Concept.MADE_IMAGES


def _form(request: Request) -> Iterator[Concept]:
    if request.logprobs is not None:
        yield Concept.LOGPROBS
    if request.logit_bias:
        yield Concept.LOGIT_BIAS
    if request.format is not None:
        is_schema = request.format.kind is FormatKind.JSON_SCHEMA
        yield Concept.JSON_SCHEMA if is_schema else Concept.JSON_OBJECT


def _tools(request: Request) -> Iterator[Concept]:
    if not request.tools:
        return
    yield Concept.TOOLS
    if any(tool.is_free_form for tool in request.tools):
        yield Concept.FREE_FORM_TOOLS
    if any(tool.strict for tool in request.tools):
        yield Concept.STRICT_TOOLS
    choice = request.tool_choice
    if choice is not None and choice.mode is ToolMode.NONE:
        yield Concept.NO_TOOLS
    elif choice is not None and choice.mode is ToolMode.REQUIRED:
        yield Concept.FORCED_TOOLS
    if choice is not None and choice.offered:
        yield Concept.ALLOWED_TOOLS
    if request.parallel_tools is False:
        yield Concept.PARALLEL_TOOLS


def _block(block: Block, issuers: tuple[Api | None, ...]) -> Iterator[Concept]:
    match block:
        case Image(source=source):
            yield from _media(source, Concept.IMAGE, Concept.IMAGE_URL)
            if block.detail not in ("", "auto"):
                yield Concept.IMAGE_DETAIL
        case Audio():
            yield Concept.AUDIO
        case File(source=source):
            yield from _media(source, Concept.FILE, Concept.FILE_URL)
            if block.cites:
                yield Concept.CITATIONS
        case Reasoning() | Sealed() if block.issuer is not None and block.issuer not in issuers:
            yield Concept.SEALED_REASONING
        case Reasoning(issuer=None):
            yield Concept.OLD_REASONING
        case _:
            pass
    if getattr(block, "cache", None) is not None:
        yield Concept.CACHE_MARKS


def _result(result: ToolResult, issuers: tuple[Api | None, ...]) -> Iterator[Concept]:
    if result.is_error:
        yield Concept.TOOL_ERRORS
    for inner in result.content:
        if type(inner) is ToolResult:
            yield Concept.TOOL_MEDIA
            yield from _result(inner, issuers)
        elif type(inner) is not Text:
            yield Concept.TOOL_MEDIA
            yield from _block(inner, issuers)
    if result.cache is not None:
        yield Concept.CACHE_MARKS


def _media(source: Media, concept: Concept, by_url: Concept) -> Iterator[Concept]:
    if source.file_id:
        yield Concept.HELD_MEDIA
    yield by_url if source.url else concept
