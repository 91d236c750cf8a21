"""What an answer says it used, read from a whole JSON answer or from one event of a stream."""

from typing import Final, TypeAlias

import msgspec

from kinference.shapes.scan import BadBody, decode
from kinference.vocabulary import Api

TOKENS_MAX: Final = 2**32 - 1
"""As much as a report can carry; an engine that claims more is not believed beyond it."""


class Usage(msgspec.Struct, frozen=True):
    """Token counts of one answer, in one meaning for every API; None where the answer did not say."""

    prompt_tokens: int | None = None
    """All of the prompt, whether read from a cache, written to one or neither."""
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    """None is not reported; 0 is a measured miss."""
    model: str | None = None


_Number: TypeAlias = int | float  # some engines count in floats


class _Details(msgspec.Struct):
    cached_tokens: _Number | None = None


class _Counts(msgspec.Struct):
    """Every vendor's names for the counts."""

    prompt_tokens: _Number | None = None
    completion_tokens: _Number | None = None
    prompt_tokens_details: _Details | None = None

    input_tokens: _Number | None = None
    output_tokens: _Number | None = None
    input_tokens_details: _Details | None = None
    cache_read_input_tokens: _Number | None = None
    cache_creation_input_tokens: _Number | None = None


class _GeminiCounts(msgspec.Struct, rename="camel"):
    """Gemini's names; what the candidates took leaves out the thoughts."""

    prompt_token_count: _Number | None = None
    candidates_token_count: _Number | None = None
    thoughts_token_count: _Number | None = None
    cached_content_token_count: _Number | None = None
    tool_use_prompt_token_count: _Number | None = None

    @property
    def counts(self) -> _Counts:
        written, prompt = (self.candidates_token_count, self.thoughts_token_count), self.prompt_token_count
        return _Counts(
            prompt_tokens=None if prompt is None else prompt + (self.tool_use_prompt_token_count or 0),
            completion_tokens=None if written == (None, None) else sum(count or 0 for count in written),
            prompt_tokens_details=_Details(self.cached_content_token_count),
        )


class _Inner(msgspec.Struct):
    model: str | None = None
    usage: _Counts | None = None


class _Answer(msgspec.Struct):
    """A whole answer, or an event: Responses wraps its answer in `response`, Anthropic its first one in `message`."""

    model: str | None = None
    usage: _Counts | None = None
    response: _Inner | None = None
    message: _Inner | str | None = None
    usage_metadata: _GeminiCounts | None = msgspec.field(default=None, name="usageMetadata")
    model_version: str | None = msgspec.field(default=None, name="modelVersion")


_ANSWER = msgspec.json.Decoder(_Answer)
_MESSAGES: Final = Api.ANTHROPIC_MESSAGES
"""Read once: Python 3.11 finds a member of an enum by a hook of its metaclass, at ten times the price of a constant."""


class UsageReader:
    """Gathers usage from the events of one answer: counts in a stream are running totals, so the latest of each field
    that was given holds, and nothing is ever summed.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._counts: _Counts | None = None
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
        for name in _Counts.__struct_fields__:
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
        return _usage(api, *_read(answer))
    except BadBody:
        return None


def _read(data: bytes) -> tuple[_Counts | None, str | None]:
    """The counts and the model that an answer or an event tells. Raises BadBody."""
    answer = decode(_ANSWER, data)
    wrapped = answer.response or (answer.message if isinstance(answer.message, _Inner) else None)
    counts, model = answer.usage, answer.model or answer.model_version
    if wrapped is not None:
        counts, model = counts or wrapped.usage, model or wrapped.model
    if answer.usage_metadata is not None:
        counts = answer.usage_metadata.counts
    return counts, model


def _usage(api: Api, counts: _Counts | None, model: str | None) -> Usage | None:
    if counts is None:
        return None
    return _anthropic(counts, model) if api is _MESSAGES else _openai(counts, model)


def _openai(counts: _Counts, model: str | None) -> Usage:
    details = counts.prompt_tokens_details or counts.input_tokens_details
    return Usage(
        prompt_tokens=_first(counts.prompt_tokens, counts.input_tokens),
        completion_tokens=_first(counts.completion_tokens, counts.output_tokens),
        cached_tokens=_first(details.cached_tokens) if details else None,
        model=model,
    )


def _anthropic(counts: _Counts, model: str | None) -> Usage:
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


def _first(*counts: _Number | None) -> int | None:
    for count in counts:
        if count is not None:
            return int(count if 0 <= count <= TOKENS_MAX else max(0, min(count, TOKENS_MAX)))
    return None
