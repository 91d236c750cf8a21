"""The members of an answer, or of one event of a stream, that tell what it used."""

from typing import TypeAlias

import msgspec

Number: TypeAlias = int | float  # some engines count in floats


class Details(msgspec.Struct):
    cached_tokens: Number | None = None


class Written(msgspec.Struct):
    reasoning_tokens: Number | None = None


class Counts(msgspec.Struct):
    """Every vendor's names for the counts."""

    prompt_tokens: Number | None = None
    completion_tokens: Number | None = None
    prompt_tokens_details: Details | None = None
    completion_tokens_details: Written | None = None
    total_tokens: Number | None = None
    prompt_cache_hit_tokens: Number | None = None
    cached_tokens: Number | None = None

    input_tokens: Number | None = None
    output_tokens: Number | None = None
    input_tokens_details: Details | None = None
    cache_read_input_tokens: Number | None = None
    cache_creation_input_tokens: Number | None = None


class GeminiCounts(msgspec.Struct, rename="camel"):
    """Gemini's names; what the candidates took leaves out the thoughts."""

    prompt_token_count: Number | None = None
    candidates_token_count: Number | None = None
    thoughts_token_count: Number | None = None
    cached_content_token_count: Number | None = None
    tool_use_prompt_token_count: Number | None = None

    @property
    def counts(self) -> Counts:
        written, prompt = (self.candidates_token_count, self.thoughts_token_count), self.prompt_token_count
        return Counts(
            prompt_tokens=None if prompt is None else prompt + (self.tool_use_prompt_token_count or 0),
            completion_tokens=None if written == (None, None) else sum(count or 0 for count in written),
            prompt_tokens_details=Details(self.cached_content_token_count),
        )


class Inner(msgspec.Struct):
    model: str | None = None
    usage: Counts | None = None


class Answer(msgspec.Struct):
    """A whole answer, or an event: Responses wraps its answer in `response`, Anthropic its first one in `message`."""

    model: str | None = None
    usage: Counts | None = None
    response: Inner | None = None
    message: Inner | str | None = None
    usage_metadata: GeminiCounts | None = msgspec.field(default=None, name="usageMetadata")
    model_version: str | None = msgspec.field(default=None, name="modelVersion")
