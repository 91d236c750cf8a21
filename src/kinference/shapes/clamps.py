"""What a request asks for, brought into the range of its destination's API and model, each thing by its own rule."""

import re
from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal
from typing import Final, Protocol

from msgspec.structs import replace

from kinference.shapes import claude, media, reasoners
from kinference.shapes.concepts import Concept, Fields, Treatment, name_of, treatment
from kinference.shapes.gemini.thinking import misses, refuses_penalties
from kinference.shapes.ir import (
    Audio,
    Effort,
    Reasoning,
    Request,
    Thinking,
    ToolCall,
    ToolChoice,
    ToolMode,
    ToolResult,
    blocks_of,
    kinds_of,
)
from kinference.shapes.json_hints import only_hints
from kinference.shapes.lost import Lost, Untranslatable
from kinference.shapes.scan import BadBody
from kinference.vocabulary import Api

OPENAI_STOPS: Final = 4
OPENAI_ID_MAX: Final = 40
"""Characters of a call's id in Chat, where it is OpenAI's."""
RESPONSES_TOKENS_MIN: Final = 16
TOPS_MAX: Final = 20
GEMINI_ANSWERS: Final = 8
OPENAI_AUDIO: Final = ("wav", "mp3")
GEMINI_STOPS: Final = 5

_SEED_END: Final = 2**31
_BELOW_TWO: Final = 1.99
_REACHES_SOMEBODY: Final = re.compile(r"@|^\+\d[\d ()./-]{5,}$|^\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}$")

CLAUDE_APIS: Final = (Api.ANTHROPIC_MESSAGES, Api.BEDROCK_CONVERSE)
OPENAI_APIS: Final = (Api.OPENAI_CHAT, Api.OPENAI_RESPONSES)


_KEEPS_TO_SITES: Final = (Api.OPENAI_RESPONSES, Api.ANTHROPIC_MESSAGES)
_DETAILS: Final[Mapping[Api, tuple[str, ...]]] = {
    Api.OPENAI_CHAT: ("user_location", "search_context_size"),
    Api.OPENAI_RESPONSES: ("user_location", "search_context_size"),
    Api.ANTHROPIC_MESSAGES: ("user_location", "max_uses"),
    Api.GEMINI: (),
}
"""What an API can be told of how to search the web."""
_TIERS: Final[Mapping[Api, Mapping[str, str]]] = {
    Api.ANTHROPIC_MESSAGES: {"priority": "auto", "fast": "auto", "scale": "auto", "flex": "standard_only"},
    Api.BEDROCK_CONVERSE: {"fast": "priority", "scale": "reserved"},
    Api.GEMINI: {"fast": "priority", "scale": "priority"},
}
"""Those of OpenAI's that an API has not, and the nearest that it has."""


_EXTENDED: Final = (
    (Concept.TOP_K, "top_k"),
    (Concept.MIN_P, "min_p"),
    (Concept.REPETITION_PENALTY, "repetition_penalty"),
)


_UNSAID: Final = (None, None, None)
_USUAL_VERBOSITY: Final = "medium"


class _Rule(Protocol):
    def __call__(self, request: Request, fields: Fields, target: Api) -> tuple[Request, list[Lost]]:
        """The request within range, and what that costs."""
        ...


def without_neutral(request: Request, target: Api) -> Request:
    """The request without wishes that change nothing, as clients write them out that name every field: nothing is lost
    where a target has no word for them. A server that has them may have other ideas of its own, and is told.
    """
    sampling = request.sampling
    if not request.is_extended_chat and (sampling.top_k, sampling.min_p, sampling.repetition_penalty) != _UNSAID:
        top_k = None if sampling.top_k is not None and sampling.top_k < 1 else sampling.top_k
        min_p = None if sampling.min_p == 0 else sampling.min_p
        penalty = None if sampling.repetition_penalty == 1 else sampling.repetition_penalty
        request = replace(request, sampling=replace(sampling, top_k=top_k, min_p=min_p, repetition_penalty=penalty))
    if "" in request.stop:
        request = replace(request, stop=tuple(filter(None, request.stop)))
    has_none = request.is_plain_chat or treatment(Concept.VERBOSITY, target) is Treatment.DROPPED
    if request.verbosity == _USUAL_VERBOSITY and has_none:
        request = replace(request, verbosity="")
    return request


def clamp(request: Request, asked: Collection[Concept], fields: Fields, target: Api) -> tuple[Request, list[Lost]]:
    """The request as the target's API and the model take it, and what that costs. `asked` is what it uses. Raises
    BadBody.
    """
    losses: list[Lost] = []
    for concept, rule in _RULES:
        if concept is None or concept in asked:
            request, more = rule(request, fields, target)
            losses += more
    return request, losses


def _temperature(request: Request, fields: Fields, target: Api) -> tuple[Request, list[Lost]]:
    temperature = request.sampling.temperature
    if temperature is None or 0 <= temperature <= 1:
        return request, []
    if temperature < 0:
        raise BadBody("temperature: below 0")
    if treatment(Concept.TEMPERATURE, target) is not Treatment.CLAMPED:
        return request, []
    lost = Lost("clamped", name_of(Concept.TEMPERATURE, fields), f"{temperature}->1.0")
    return replace(request, sampling=replace(request.sampling, temperature=1.0)), [lost]


def _cap(request: Request, fields: Fields, target: Api) -> tuple[Request, list[Lost]]:
    cap = claude.refuses_more(request.model, request.max_tokens or 0) if target in CLAUDE_APIS else None
    if target is Api.OPENAI_RESPONSES and 0 < (request.max_tokens or 0) < RESPONSES_TOKENS_MIN:
        cap = RESPONSES_TOKENS_MIN
    if cap is None:
        return request, []
    lost = Lost("clamped", name_of(Concept.MAX_TOKENS, fields), f"{request.max_tokens}->{cap}")
    return replace(request, max_tokens=cap), [lost]


def _stop(request: Request, fields: Fields, target: Api) -> tuple[Request, list[Lost]]:
    """For Claude none of white space, and no more than its limit."""
    takes_white = target not in CLAUDE_APIS or (target is Api.BEDROCK_CONVERSE and "claude" not in request.model)
    kept = tuple(one for one in request.stop if takes_white or one.strip())
    if not request.is_extended_chat:
        kept = kept[: {Api.OPENAI_CHAT: OPENAI_STOPS, Api.GEMINI: GEMINI_STOPS}.get(target, len(kept))]
    if len(kept) == len(request.stop) or treatment(Concept.STOP, target) is Treatment.DROPPED:
        return request, []
    lost = Lost("clamped", name_of(Concept.STOP, fields), f"{len(request.stop)}->{len(kept)}")
    return replace(request, stop=kept), [lost]


def _seed(request: Request, fields: Fields, target: Api) -> tuple[Request, list[Lost]]:
    """Google's are of 32 bits."""
    seed = request.sampling.seed
    if seed is None or target is not Api.GEMINI or -_SEED_END <= seed < _SEED_END:
        return request, []
    lost = Lost("clamped", name_of(Concept.SEED, fields), f"{seed}->{seed % _SEED_END}")
    return replace(request, sampling=replace(request.sampling, seed=seed % _SEED_END)), [lost]


def _penalties(request: Request, fields: Fields, target: Api) -> tuple[Request, list[Lost]]:
    """Google's end before 2."""
    sampling = request.sampling
    if target is not Api.GEMINI or not any(
        _is_two(one) for one in (sampling.frequency_penalty, sampling.presence_penalty)
    ):
        return request, []
    frequency, presence = (
        _BELOW_TWO if _is_two(one) else one for one in (sampling.frequency_penalty, sampling.presence_penalty)
    )
    lost = Lost("clamped", name_of(Concept.PENALTIES, fields), f"2->{_BELOW_TWO}")
    return replace(request, sampling=replace(sampling, frequency_penalty=frequency, presence_penalty=presence)), [lost]


def _is_two(penalty: int | Decimal | None) -> bool:
    return penalty is not None and penalty == 2  # noqa: PLR2004 - the most that others take


def _answers(request: Request, fields: Fields, target: Api) -> tuple[Request, list[Lost]]:
    if target is Api.GEMINI and request.answers > GEMINI_ANSWERS:
        raise Untranslatable(
            f"{name_of(Concept.SEVERAL_ANSWERS, fields)}: this destination gives {GEMINI_ANSWERS} at most"
        )
    return request, []


def _tops(request: Request, fields: Fields, target: Api) -> tuple[Request, list[Lost]]:  # noqa: ARG001 - as every rule
    """Engines may be set up to tell of more of the likeliest tokens than others ever do."""
    if request.is_extended_chat or (request.logprobs or 0) <= TOPS_MAX:
        return request, []
    lost = Lost("clamped", name_of(Concept.LOGPROBS, fields), f"{request.logprobs}->{TOPS_MAX}")
    return replace(request, logprobs=TOPS_MAX), [lost]


def _tier(request: Request, fields: Fields, target: Api) -> tuple[Request, list[Lost]]:
    """Claude's APIs have other tiers than OpenAI's: what is to be sooner is so where there is room for it."""
    tiers = _TIERS.get(target)
    if tiers is None or request.service_tier not in tiers:
        return request, []
    nearest = tiers[request.service_tier]
    lost = Lost("clamped", name_of(Concept.SERVICE_TIER, fields), f"{request.service_tier}->{nearest}")
    return replace(request, service_tier=nearest), [lost]


def _user(request: Request, fields: Fields, target: Api) -> tuple[Request, list[Lost]]:
    """Anthropic takes no address and no telephone number for a user's id."""
    if target is not Api.ANTHROPIC_MESSAGES or not _REACHES_SOMEBODY.search(request.end_user):
        return request, []
    return replace(request, end_user=""), [Lost("dropped", name_of(Concept.END_USER, fields))]


def _grammar(request: Request, fields: Fields, target: Api) -> tuple[Request, list[Lost]]:
    """Where there are functions only, a grammar is words in a description."""
    is_kept = target in OPENAI_APIS and not request.is_plain_chat
    if is_kept or not any(tool.grammar for tool in request.tools):
        return request, []
    return request, [Lost("clamped", name_of(Concept.GRAMMARS, fields), "description")]


def _verbosity(request: Request, fields: Fields, target: Api) -> tuple[Request, list[Lost]]:  # noqa: ARG001 - as every rule
    """OpenAI's own."""
    if not request.is_plain_chat:
        return request, []
    return replace(request, verbosity=""), [Lost("dropped", name_of(Concept.VERBOSITY, fields))]


def _audio(request: Request, fields: Fields, target: Api) -> tuple[Request, list[Lost]]:
    """OpenAI itself takes few kinds."""
    if target is Api.OPENAI_CHAT and not request.is_plain_chat and Audio in kinds_of(request.turns):
        sounds = (block for block in blocks_of(request.turns) if isinstance(block, Audio))
        if any(media.audio_format(sound.source.mime) not in OPENAI_AUDIO for sound in sounds):
            raise Untranslatable(f"{name_of(Concept.AUDIO, fields)}: this model takes WAV and MP3")
    return request, []


def _extended(request: Request, fields: Fields, target: Api) -> tuple[Request, list[Lost]]:
    """Without ways to sample that some engines add to Chat, where the destination is none of these."""
    if target is not Api.OPENAI_CHAT or request.is_extended_chat:
        return request, []
    given = [concept for concept, name in _EXTENDED if getattr(request.sampling, name) is not None]
    return request, [Lost("dropped", name_of(concept, fields)) for concept in given]


def _thoughts(request: Request, fields: Fields, target: Api) -> tuple[Request, list[Lost]]:
    """OpenAI itself takes no message that tells what was thought; those that serve others' models in its API do."""
    if request.is_plain_chat or target is not Api.OPENAI_CHAT or Reasoning not in kinds_of(request.turns):
        return request, []
    is_told = any(isinstance(block, Reasoning) and block.issuer is None for block in blocks_of(request.turns))
    return request, [Lost("dropped", name_of(Concept.OLD_REASONING, fields))] if is_told else []


def _search(request: Request, fields: Fields, target: Api) -> tuple[Request, list[Lost]]:
    """A search as the target makes one: which sites it is of is no detail, how it goes about it is. Agents offer one of
    what OpenAI has stored with every request, and do without it elsewhere.
    """
    search = request.web_search
    if search is None:
        return request, []
    name = name_of(Concept.WEB_SEARCH, fields)
    if search.is_cached:
        return replace(request, web_search=None), [Lost("dropped", "web_search.external_web_access")]
    if target is Api.OPENAI_CHAT and (request.is_plain_chat or "search" not in request.model):
        raise Untranslatable(f"{name}: this model searches nothing in Chat")
    if target is Api.GEMINI and request.tools:
        raise Untranslatable(f"{name}: this destination either searches or calls functions")
    if (search.allowed and target not in _KEEPS_TO_SITES) or (search.blocked and target is not Api.ANTHROPIC_MESSAGES):
        raise Untranslatable(f"{name}: no destination of API {target.value} can be kept to these sites")
    wanted = {"user_location": search.place, "search_context_size": search.size, "max_uses": search.uses}
    lost = [detail for detail, value in wanted.items() if value and detail not in _DETAILS[target]]
    losses = [Lost("clamped", name, "+".join(lost))] if lost else []
    return request, [*losses, *(Lost("dropped", extra) for extra in search.extras)]


def _code(request: Request, fields: Fields, target: Api) -> tuple[Request, list[Lost]]:
    if request.runs_code and target is Api.GEMINI and request.tools:
        name = name_of(Concept.CODE_EXECUTION, fields)
        raise Untranslatable(f"{name}: this destination either runs code or calls functions")
    return request, []


def _images(request: Request, fields: Fields, target: Api) -> tuple[Request, list[Lost]]:
    """OpenAI's models make images in Responses alone, and of Google's those that are named for it."""
    is_maker = (
        request.is_plain_chat if target is Api.OPENAI_CHAT else target is not Api.GEMINI or "image" in request.model
    )
    if request.wants_images and not is_maker:
        raise Untranslatable(f"{name_of(Concept.MADE_IMAGES, fields)}: this model makes none in this API")
    return request, []


def _json(request: Request, fields: Fields, target: Api) -> tuple[Request, list[Lost]]:
    is_hinted = only_hints(request, target)
    return request, [Lost("clamped", name_of(Concept.JSON_OBJECT, fields), "hint")] if is_hinted else []


def _effort(request: Request, fields: Fields, target: Api) -> tuple[Request, list[Lost]]:
    """An effort that the model takes, whether it is OpenAI's or of whoever speaks its API."""
    thinking = request.thinking
    if thinking is None and (not request.tools or target is not Api.OPENAI_CHAT):
        return request, []
    name = name_of(Concept.THINKING, fields)
    if thinking is not None and target is Api.BEDROCK_CONVERSE and "claude" not in request.model:
        return replace(request, thinking=None), [Lost("dropped", name)]  # each maker has fields of its own for it
    if thinking is not None and target not in OPENAI_APIS:
        return _others_effort(request, thinking, name, target)
    if target is Api.OPENAI_CHAT and request.tools and reasoners.has_to_stop(request.model, thinking):
        asked = "" if thinking is None else f"{thinking.effort.word}->"
        lost = Lost("clamped", name, f"{asked}{Effort.NONE.word}")
        return replace(request, thinking=Thinking(Effort.NONE)), [lost]
    if thinking is None:
        return request, []
    effort = reasoners.nearest_effort(request.model, thinking.effort)
    if effort is None:
        losses = [] if thinking.effort is Effort.NONE else [Lost("dropped", name)]
        return replace(request, thinking=None), losses
    if effort is thinking.effort:
        return request, []
    lost = Lost("clamped", name, f"{thinking.effort.word}->{effort.word}")
    return replace(request, thinking=replace(thinking, effort=effort)), [lost]


def _others_effort(request: Request, thinking: Thinking, name: str, target: Api) -> tuple[Request, list[Lost]]:
    if target in CLAUDE_APIS and thinking.effort is Effort.NONE and claude.thinks_always(request.model):
        return replace(request, thinking=None), [Lost("dropped", name)]
    missed = misses(request.model, thinking) if target is Api.GEMINI else claude.misses(request, thinking)
    return request, [Lost("clamped", name, missed)] if missed else []


def _forced(request: Request, fields: Fields, target: Api) -> tuple[Request, list[Lost]]:
    """Claude's newest models decide themselves whether to call a tool."""
    choice = request.tool_choice
    if choice is None or target not in CLAUDE_APIS or not claude.refuses_forced_tools(request.model):
        return request, []
    names = choice.names if choice.offered else ()
    asked = "tool" if choice.names and not names else "any"
    lost = Lost("clamped", name_of(Concept.FORCED_TOOLS, fields), f"{asked}->auto")
    return replace(request, tool_choice=ToolChoice(ToolMode.AUTO, names, is_list=bool(names))), [lost]


def _allowed(request: Request, fields: Fields, target: Api) -> tuple[Request, list[Lost]]:
    """Claude is shown those alone that it may call, and what it had cached of all of them is of no use then."""
    names = request.tool_choice.offered if request.tool_choice is not None else ()
    kept = sum(tool.name in names for tool in request.tools)
    if target is not Api.ANTHROPIC_MESSAGES or kept == len(request.tools):
        return request, []
    return request, [Lost("clamped", name_of(Concept.ALLOWED_TOOLS, fields), f"{len(request.tools)}->{kept}")]


def _no_tools(request: Request, fields: Fields, target: Api) -> tuple[Request, list[Lost]]:
    """Converse can be told in words alone, where there were calls; else it is told of no tools."""
    has_calls = not kinds_of(request.turns).isdisjoint((ToolCall, ToolResult))
    if target is not Api.BEDROCK_CONVERSE or not has_calls:
        return request, []
    return request, [Lost("clamped", name_of(Concept.NO_TOOLS, fields), "hint")]


def _parallel(request: Request, fields: Fields, target: Api) -> tuple[Request, list[Lost]]:
    """On Bedrock, Claude alone has a way to say it."""
    if target is not Api.BEDROCK_CONVERSE or "claude" in request.model:
        return request, []
    return request, [Lost("dropped", name_of(Concept.PARALLEL_TOOLS, fields))]


def _model(request: Request, fields: Fields, target: Api) -> tuple[Request, list[Lost]]:
    """Without what the model itself refuses."""
    dropped: Iterable[Concept] = ()
    if target in OPENAI_APIS and reasoners.reasons(request.model):
        request, refused = reasoners.constrain(request)
        dropped = (concept for concept in refused if treatment(concept, target) is not Treatment.DROPPED)
    elif target in CLAUDE_APIS and "claude" in request.model:
        request, dropped = claude.constrain(request)
    elif target is Api.GEMINI and refuses_penalties(request.model):
        sampling = request.sampling
        dropped = [Concept.PENALTIES] if sampling.frequency_penalty or sampling.presence_penalty else []
        request = replace(request, sampling=replace(sampling, frequency_penalty=None, presence_penalty=None))
    return request, [Lost("dropped", name_of(concept, fields)) for concept in dropped]


_RULES: Final[tuple[tuple[Concept | None, _Rule], ...]] = (
    (Concept.TEMPERATURE, _temperature),
    (None, _cap),
    (Concept.STOP, _stop),
    (Concept.SEED, _seed),
    (Concept.PENALTIES, _penalties),
    (Concept.SEVERAL_ANSWERS, _answers),
    (Concept.LOGPROBS, _tops),
    (Concept.SERVICE_TIER, _tier),
    (Concept.END_USER, _user),
    (Concept.FREE_FORM_TOOLS, _grammar),
    (Concept.VERBOSITY, _verbosity),
    (Concept.AUDIO, _audio),
    (Concept.FORCED_TOOLS, _forced),
    (Concept.ALLOWED_TOOLS, _allowed),
    (Concept.NO_TOOLS, _no_tools),
    (Concept.PARALLEL_TOOLS, _parallel),
    (None, _extended),
    (Concept.OLD_REASONING, _thoughts),
    (None, _search),
    (Concept.CODE_EXECUTION, _code),
    (Concept.MADE_IMAGES, _images),
    (Concept.JSON_OBJECT, _json),
    (None, _effort),
    (None, _model),
)
"""Each with what a request must use for it to matter."""
