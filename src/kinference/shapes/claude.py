"""What Claude models take, wherever they are served: sampling and thinking differ by generation."""

import re
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from kinference.shapes.concepts import Concept
from kinference.shapes.ir import (
    ASSISTANT,
    Effort,
    Reasoning,
    Request,
    Sampling,
    Sealed,
    Thinking,
    ToolCall,
    ToolMode,
    ToolResult,
)
from kinference.vocabulary import Api

BUDGET_MIN: Final = 1024

_CAP_MIN: Final = 4096
_CAPS: Final = (
    # since, most, Opus's
    ((4, 5), 64_000, 64_000),
    ((4, 0), 64_000, 32_000),
    ((3, 7), 64_000, 64_000),
    ((3, 5), 8192, 8192),
)
_THINKING_SINCE: Final = (3, 7)
_ADAPTIVE_SINCE: Final = (4, 6)
_SCHEMAS_SINCE: Final = (4, 1)
_XHIGH_SINCE: Final = (4, 7)
_UNSAMPLED_SINCE: Final = (4, 7)
_LATE_SYSTEM_SINCE: Final = (4, 8)
_UNFORCED_SINCE: Final = {"opus": (5, 5), "sonnet": (5, 5), "fable": (5, 1), "mythos": (5, 1)}
"""These refuse to be made to call a tool."""
_THINKING_ALWAYS: Final = ("fable", "mythos")
_VERSION: Final = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")


def generation(model: str) -> tuple[int, int]:
    """The version in a model's name, dates left aside; a name that tells none is of the newest."""
    found = _VERSION.search(model)
    return (int(found[1]), int(found[2] or 0)) if found else (99, 0)


def output_cap(model: str) -> int | None:
    """The most tokens that a model writes; None where its name tells no generation."""
    found = _VERSION.search(model)
    if found is None:
        return None
    version, is_opus = generation(model), "opus" in model
    for since, cap, of_opus in _CAPS:
        if version >= since:
            return of_opus if is_opus else cap
    return _CAP_MIN


def refuses_more(model: str, max_tokens: int) -> int | None:
    """The cap that an older model would refuse to be asked for more than; None where it may be asked for so much."""
    if max_tokens <= _CAP_MIN:
        return None
    cap = output_cap(model)
    return cap if cap is not None and max_tokens > cap and generation(model) < _CAPS[0][0] else None


def is_adaptive(model: str) -> bool:
    """Whether it thinks by effort, as the newer ones do, and not by a budget of tokens."""
    return generation(model) >= _ADAPTIVE_SINCE


def holds_to_schemas(model: str) -> bool:
    """Whether its answers can be held to a schema; another maker's model is none of its older ones."""
    return generation(model) >= _SCHEMAS_SINCE


def begins_answers(model: str) -> bool:
    """Whether a request may hold the beginning of its answer."""
    return generation(model) < _ADAPTIVE_SINCE or _VERSION.search(model) is None


def takes_late_system(model: str) -> bool:
    """Whether the operator may speak within the conversation; a name that tells no generation may be anyone's."""
    return generation(model) >= _LATE_SYSTEM_SINCE and _VERSION.search(model) is not None


def refuses_forced_tools(model: str) -> bool:
    """Whether it is an error to demand a call."""
    since = next((since for family, since in _UNFORCED_SINCE.items() if f"claude-{family}" in model), None)
    return since is not None and _VERSION.search(model) is not None and generation(model) >= since


def thinks_always(model: str) -> bool:
    """Whether it is an error to tell it not to think."""
    return any(f"claude-{family}" in model for family in _THINKING_ALWAYS)


def misses(request: Request, thinking: Thinking) -> str:
    """How much less a model thinks than it was asked to; "" where it does as it was asked, or near enough."""
    if "claude" not in request.model or thinking.effort is Effort.NONE:
        return ""
    if is_adaptive(request.model):
        word = effort_of(request)
        return (
            ""
            if word == thinking.effort.word or thinking.effort is Effort.MINIMAL
            else f"{thinking.effort.word}->{word}"
        )
    asked, given = thinking.budget or thinking.effort.budget, budget(request)
    return f"{asked}->{given}" if given < asked else ""


def effort_of(request: Request) -> str:
    """How much to think, by Claude's own words; of these one is newer than the others."""
    assert request.thinking is not None
    effort = request.thinking.effort
    if effort is Effort.MINIMAL:
        return Effort.LOW.word
    is_known = effort is not Effort.XHIGH or generation(request.model) >= _XHIGH_SINCE
    return effort.word if is_known else Effort.HIGH.word


def budget(request: Request) -> int:
    """The tokens to think with, less than the answer's cap."""
    assert request.thinking is not None
    wanted = request.thinking.budget or request.thinking.effort.budget
    return max(BUDGET_MIN, min(wanted, (request.max_tokens or wanted + 1) - 1))


def constrain(request: Request) -> tuple[Request, tuple[Concept, ...]]:
    """The request without what the model refuses, and what that was."""
    dropped: list[Concept] = []
    if _thinks(request) and not _may_think(request):
        request = replace(request, thinking=None)
        dropped.append(Concept.THINKING)
    refused = dict(_refused_sampling(request))
    if refused:
        request = replace(request, sampling=replace(request.sampling, **dict.fromkeys(refused)))
        dropped += (concept for concept in refused.values() if concept is not None)
    return request, tuple(dropped)


def _thinks(request: Request) -> bool:
    return request.thinking is not None and request.thinking.effort is not Effort.NONE


def _may_think(request: Request) -> bool:
    if generation(request.model) < _THINKING_SINCE:
        return False
    if not is_adaptive(request.model) and request.max_tokens is not None and request.max_tokens <= BUDGET_MIN:
        return False
    choice = request.tool_choice
    if choice is not None and request.tools and choice.mode is ToolMode.REQUIRED:
        return False
    return not _has_lost_its_thoughts(request)


def _has_lost_its_thoughts(request: Request) -> bool:
    """A call that is being answered must come with the thoughts that led to it, as their issuer signed them."""
    is_answered = False
    for turn in reversed(request.turns):
        if turn.role is not ASSISTANT:
            is_answered = is_answered or any(isinstance(block, ToolResult) for block in turn.blocks)
        elif not is_answered:
            return False
        elif any(isinstance(block, ToolCall) for block in turn.blocks):
            return not any(
                isinstance(block, Reasoning | Sealed) and block.issuer is Api.ANTHROPIC_MESSAGES
                for block in turn.blocks
            )
    return False


def _refused_sampling(request: Request) -> Iterator[tuple[str, Concept | None]]:
    """Fields of the sampling that must go; without a concept where what is refused is only the default."""
    sampling = request.sampling
    if generation(request.model) >= _UNSAMPLED_SINCE or _thinks(request):
        yield from _all_of(sampling)
    elif sampling.temperature is not None and sampling.top_p is not None:
        yield "top_p", None if sampling.top_p == 1 else Concept.TOP_P


def _all_of(sampling: Sampling) -> Iterator[tuple[str, Concept | None]]:
    if sampling.temperature is not None:
        yield "temperature", None if sampling.temperature == 1 else Concept.TEMPERATURE
    if sampling.top_p is not None:
        yield "top_p", None if sampling.top_p == 1 else Concept.TOP_P
    if sampling.top_k is not None:
        yield "top_k", Concept.TOP_K
