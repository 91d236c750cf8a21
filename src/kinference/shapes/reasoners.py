"""What OpenAI's models take of reasoning, and what those that reason refuse of sampling."""

import re
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from kinference.shapes.concepts import Concept
from kinference.shapes.ir import Effort, Request, Thinking

_REASONER: Final = re.compile(r"(?:^|[/.:])(?:o[1-9]|gpt-(?:[5-9]|[1-9]\d))(?:[-.].*)?$")
_CHAT: Final = "-chat"
"""In the names of their siblings that do not reason."""
_OWN: Final = re.compile(r"(?:^|[/.:])(?:chatgpt-|gpt-[345]|gpt-[1-9]\d|o[1-9](?:[-.]|$)|codex-)")
_GENERATION: Final = re.compile(r"gpt-(\d+)(?:\.(\d+))?")
_NONE_SINCE: Final[tuple[int, ...]] = (5, 1)
_MOST_SINCE: Final[tuple[int, ...]] = (5, 2)
_ALL_SINCE: Final[tuple[int, ...]] = (5, 6)
_BY_RESPONSES_SINCE: Final = (5, 4)
"""In Chat these call tools without reasoning only."""
_THINKING_SINCE: Final = (5, 6)
"""These reason unless they are told not to."""
_MARKS_SINCE: Final = (5, 6)
_CODEX: Final = "codex"
_CODEX_MAX: Final = "codex-max"


def reasons(model: str) -> bool:
    """Whether a model is one of them by its name."""
    return _CHAT not in model and _REASONER.search(model) is not None


def is_openais(model: str) -> bool:
    """Whether a model is OpenAI's by its name."""
    return _OWN.search(model) is not None


def nearest_effort(model: str, effort: Effort) -> Effort | None:
    """As near to it as a model takes; None where it takes none. Servers of others' models know the usual three."""
    if is_openais(model) and not reasons(model):
        return None
    taken = tuple(_efforts(model))
    if effort in taken:
        return effort
    order = [*Effort]
    more = [each for each in taken if order.index(each) > order.index(effort)]
    return more[0] if more else taken[-1]


def has_to_stop(model: str, thinking: Thinking | None) -> bool:
    """Whether a model has to be told not to reason, so that it may call tools in Chat."""
    if thinking is None:
        return _generation(model) >= _THINKING_SINCE
    return _generation(model) >= _BY_RESPONSES_SINCE and thinking.effort is not Effort.NONE


def takes_marks(model: str) -> bool:
    """Whether it can be told up to where its prompt is worth caching."""
    return _CHAT not in model and _generation(model) >= _MARKS_SINCE


def _generation(model: str) -> tuple[int, int]:
    """Of the GPTs that reason; (0, 0) of all others."""
    found = _GENERATION.search(model) if reasons(model) else None
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


def _efforts(model: str) -> Iterator[Effort]:
    """Those that a model takes, least first."""
    generation = _generation(model)
    thinks_always = _CODEX in model or (generation == (0, 0) and reasons(model))
    if not thinks_always:
        is_old = (0, 0) < generation < _NONE_SINCE
        yield Effort.MINIMAL if is_old else Effort.NONE
    yield from (Effort.LOW, Effort.MEDIUM, Effort.HIGH)
    if generation >= _MOST_SINCE or _CODEX_MAX in model:
        yield Effort.XHIGH
    if generation >= _ALL_SINCE:
        yield Effort.MAX


def constrain(request: Request) -> tuple[Request, tuple[Concept, ...]]:
    """The request without what the model refuses, and what that was."""
    if request.thinking is not None and request.thinking.effort is Effort.NONE:
        return request, ()
    refused = dict(_refused(request))
    sampling = replace(request.sampling, temperature=None, top_p=None, frequency_penalty=None, presence_penalty=None)
    request = replace(request, sampling=sampling, logprobs=None, stop=())
    return request, tuple(concept for concept, is_told in refused.items() if is_told)


def _refused(request: Request) -> Iterator[tuple[Concept, bool]]:
    """What goes, and whether it is a loss: the value that the model would have taken anyway is none."""
    sampling = request.sampling
    yield Concept.TEMPERATURE, sampling.temperature not in (None, 1)
    yield Concept.TOP_P, sampling.top_p not in (None, 1)
    yield Concept.PENALTIES, bool(sampling.frequency_penalty or sampling.presence_penalty)
    yield Concept.LOGPROBS, request.logprobs is not None
    yield Concept.STOP, bool(request.stop)
