"""The members of a request body that routing reads, as slices of the body that are decoded where one is asked for."""

from operator import attrgetter
from typing import Final, TypeVar

import msgspec

S = TypeVar("S", bound=msgspec.Struct)

ABSENT: Final = msgspec.Raw(b"null")

_NOTHING: Final = frozenset({b"null", b"false", b"0", b'""', b"[]", b"{}"})


class Body(msgspec.Struct):
    """Every member that routing reads of any API. Raw where a type that we do not expect must not refuse the body."""

    model: str = ""
    stream: bool | None = None
    messages: msgspec.Raw = ABSENT
    prompt: msgspec.Raw = ABSENT
    input: msgspec.Raw = ABSENT

    contents: msgspec.Raw = ABSENT
    generateContentRequest: msgspec.Raw = ABSENT  # noqa: N815 - as the API spells it

    generationConfig: msgspec.Raw = ABSENT  # noqa: N815 - as the API spells it

    system: msgspec.Raw = ABSENT
    systemInstruction: msgspec.Raw = ABSENT  # noqa: N815 - as the API spells it
    system_instruction: msgspec.Raw = ABSENT
    instructions: msgspec.Raw = ABSENT
    tools: msgspec.Raw = ABSENT
    functions: msgspec.Raw = ABSENT

    max_completion_tokens: msgspec.Raw = ABSENT
    max_output_tokens: msgspec.Raw = ABSENT
    max_tokens: msgspec.Raw = ABSENT
    stream_options: msgspec.Raw = ABSENT

    modalities: msgspec.Raw = ABSENT
    include: msgspec.Raw = ABSENT
    logprobs: msgspec.Raw = ABSENT
    top_logprobs: msgspec.Raw = ABSENT
    prompt_logprobs: msgspec.Raw = ABSENT
    response_format: msgspec.Raw = ABSENT
    output_format: msgspec.Raw = ABSENT
    output_config: msgspec.Raw = ABSENT
    text: msgspec.Raw = ABSENT
    structured_outputs: msgspec.Raw = ABSENT
    guided_json: msgspec.Raw = ABSENT
    guided_regex: msgspec.Raw = ABSENT
    guided_choice: msgspec.Raw = ABSENT
    guided_grammar: msgspec.Raw = ABSENT

    prompt_cache_key: msgspec.Raw = ABSENT
    conversation: msgspec.Raw = ABSENT
    previous_response_id: msgspec.Raw = ABSENT
    metadata: msgspec.Raw = ABSENT
    user: msgspec.Raw = ABSENT
    cache_salt: msgspec.Raw = ABSENT

    anthropic_version: msgspec.Raw = ABSENT
    stop_sequences: msgspec.Raw = ABSENT
    thinking: msgspec.Raw = ABSENT
    reasoning: msgspec.Raw = ABSENT
    encoding_format: msgspec.Raw = ABSENT
    n: msgspec.Raw = ABSENT
    best_of: msgspec.Raw = ABSENT
    logit_bias: msgspec.Raw = ABSENT
    dimensions: msgspec.Raw = ABSENT


class Named(msgspec.Struct):
    """The one member that is told of a body which cannot be read otherwise."""

    model: str = ""


class StreamOptions(msgspec.Struct):
    include_usage: bool | None = None


class Streaming(msgspec.Struct):
    """What a body says of its stream."""

    stream: bool | None = None
    stream_options: msgspec.Raw = ABSENT


class Metadata(msgspec.Struct):
    session_id: msgspec.Raw = ABSENT
    user_id: msgspec.Raw = ABSENT


class Conversation(msgspec.Struct):
    id: str = ""


class TextSettings(msgspec.Struct):
    format: msgspec.Raw = ABSENT


class GenerationConfig(msgspec.Struct, rename="camel"):
    """What Gemini's has that is a need."""

    candidate_count: msgspec.Raw = ABSENT
    response_logprobs: msgspec.Raw = ABSENT
    response_mime_type: msgspec.Raw = ABSENT
    response_schema: msgspec.Raw = ABSENT
    response_json_schema: msgspec.Raw = ABSENT


class Members:
    """Some members of a body, which are most often absent together: asking for all of them at once costs what asking
    for one does.
    """

    def __init__(self, *names: str) -> None:
        self._read, self._absent = attrgetter(*names), (ABSENT,) * len(names)

    def are_absent(self, fields: Body) -> bool:
        """Whether a body has none of them."""
        return bool(self._read(fields) == self._absent)


def present(value: msgspec.Raw) -> bool:
    """There and not null."""
    return value is not ABSENT and bytes(memoryview(value)[:4]) != b"null"


def given(value: msgspec.Raw) -> bool:
    """Present and asking for something: neither null, false, zero nor empty."""
    return value is not ABSENT and bytes(memoryview(value)[:6]) not in _NOTHING


def string(value: msgspec.Raw) -> str:
    """The text of a JSON string, "" of anything else."""
    return msgspec.json.decode(value, type=str) if value is not ABSENT and bytes(value).startswith(b'"') else ""


def struct(kind: type[S], value: msgspec.Raw) -> S:
    """The fields of a small object; their defaults when it is none or holds other types."""
    if value is ABSENT:
        return kind()
    try:
        return msgspec.json.decode(value, type=kind)
    except msgspec.ValidationError:
        return kind()
