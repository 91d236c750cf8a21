"""What an answer says it used, read from a whole JSON answer or from one event of a stream."""

from typing import Final

import msgspec

from kinference.shapes.scan import BadBody, decode
from kinference.shapes.usage_fields import Answer, Counts, Inner, Number
from kinference.structs import Frozen
from kinference.vocabulary import Api

TOKENS_MAX: Final = 2**32 - 1
"""As much as a report can carry; an engine that claims more is not believed beyond it."""


class Usage(Frozen, frozen=True):
    """Token counts of one answer, in one meaning for every API; None where the answer did not say."""

    prompt_tokens: int | None = None
    """All of the prompt, whether read from a cache, written to one or neither."""
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    """None is not reported; 0 is a measured miss."""
    model: str | None = None


_ANSWER: Final = msgspec.json.Decoder(Answer)
_MESSAGES: Final = Api.ANTHROPIC_MESSAGES
"""Read once: Python 3.11 finds a member of an enum by a hook of its metaclass, at ten times the price of a constant."""


class UsageReader:
    """Gathers usage from the events of one answer: counts in a stream are running totals, so the latest of each field
    that was given holds, and nothing is ever summed.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._counts: Counts | None = None
        self._model: str | None = None

    def read(self, data: bytes) -> bool:
        """Take an answer or an event's data in; False when it carries no usage or is not what it should be."""
        try:
            later, model = _read(data)
        except BadBody:
            return False
        self._model = model or self._model
        if later is None:
            return False
        if self._counts is None:
            self._counts = later
            return True
        for name in Counts.__struct_fields__:
            if (value := getattr(later, name)) is not None:
                setattr(self._counts, name, value)
        return True

    @property
    def usage(self) -> Usage | None:
        """The usage so far; None when none was reported."""
        return _usage(self._api, self._counts, self._model)


def read_usage(api: Api, answer: bytes) -> Usage | None:
    """The usage in a whole JSON answer."""
    try:
        counts, model = _read(answer)
    except BadBody:
        return None
    return _usage(api, counts, model)


def _read(data: bytes) -> tuple[Counts | None, str | None]:
    """The counts and the model that an answer or an event tells. Raises BadBody."""
    answer = decode(_ANSWER, data)
    wrapped = answer.response or (answer.message if isinstance(answer.message, Inner) else None)
    counts, model = answer.usage, answer.model or answer.model_version
    if wrapped is not None:
        counts, model = counts or wrapped.usage, model or wrapped.model
    if answer.usage_metadata is not None:
        counts = answer.usage_metadata.counts
    return counts, model


def _usage(api: Api, counts: Counts | None, model: str | None) -> Usage | None:
    if counts is None:
        return None
    return _anthropic(counts, model) if api is _MESSAGES else _openai(counts, model)


def _openai(counts: Counts, model: str | None) -> Usage:
    details = counts.prompt_tokens_details or counts.input_tokens_details
    return Usage(
        prompt_tokens=_first(counts.prompt_tokens, counts.input_tokens),
        completion_tokens=_first(_written(counts), counts.output_tokens),
        cached_tokens=_first(details.cached_tokens if details else None, *_cached_beside(counts)),
        model=model,
    )


def _written(counts: Counts) -> Number | None:
    """Some servers count what was thought beside what was said, as nothing but their total tells."""
    prompt, written, details = counts.prompt_tokens, counts.completion_tokens, counts.completion_tokens_details
    thought = details.reasoning_tokens if details else None
    if thought and prompt is not None and written is not None and counts.total_tokens == prompt + written + thought:
        return written + thought
    return written


def _cached_beside(counts: Counts) -> tuple[Number | None, Number | None]:
    """Where some servers have what OpenAI has in the details."""
    return counts.prompt_cache_hit_tokens, counts.cached_tokens


def _anthropic(counts: Counts, model: str | None) -> Usage:
    """`input_tokens` leaves out what was read from the cache and what was written to it."""
    prompt = counts.input_tokens
    if prompt is not None:
        prompt += (counts.cache_read_input_tokens or 0) + (counts.cache_creation_input_tokens or 0)
    return Usage(
        prompt_tokens=_first(prompt),
        completion_tokens=_first(counts.output_tokens),
        cached_tokens=_first(counts.cache_read_input_tokens),
        model=model,
    )


def _first(*counts: Number | None) -> int | None:
    for count in counts:
        if count is not None:
            return int(count if 0 <= count <= TOKENS_MAX else max(0, min(count, TOKENS_MAX)))
    return None
