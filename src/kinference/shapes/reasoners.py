"""What OpenAI's reasoning models refuse of sampling, unless they are told not to reason."""

import re
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from kinference.shapes.concepts import Concept
from kinference.shapes.ir import Effort, Request

_REASONER: Final = re.compile(r"(?:^|[/.:])(?:o[1-9]|gpt-(?:[5-9]|[1-9]\d))(?:[-.].*)?$")
_CHAT: Final = "-chat"
"""In the names of their siblings that do not reason."""


def reasons(model: str) -> bool:
    """Whether a model is one of them by its name."""
    return _CHAT not in model and _REASONER.search(model) is not None


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
