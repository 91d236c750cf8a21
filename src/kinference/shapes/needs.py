"""Which capabilities a request asks of whoever serves it."""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from kinference.shapes.fields import Body, GenerationConfig, Members, TextSettings, given, struct
from kinference.vocabulary import Api, Need

# Inside a JSON string the quotes would be escaped, so these match structure and never text.
_MEDIA_PART: Final = re.compile(
    rb'"type"\s*:\s*"(image|image_url|input_image|image_embeds|video_url|input_audio|audio_url|audio)"'
)
_AUDIO_TYPES: Final = frozenset({b"input_audio", b"audio_url", b"audio"})
_GEMINI_MEDIA: Final = re.compile(rb'"mime_?[tT]ype"\s*:\s*"(image|audio|video)/')
_TOKENS: Final = re.compile(rb"\s*\[[\s\[]*[0-9]")
_ASKING: Final = Members(
    *("tools", "functions", "modalities", "logprobs", "top_logprobs", "prompt_logprobs", "include"),
    *("response_format", "output_format", "output_config", "text", "structured_outputs"),
    *("guided_json", "guided_regex", "guided_choice", "guided_grammar"),
    *("n", "best_of", "logit_bias", "prompt", "input"),
)
"""All that asks for something beside the conversation."""
_FORMAT_TYPE: Final = re.compile(rb'"type"\s*:\s*"(?!text")')


_NONE: Final[frozenset[Need]] = frozenset()
_GEMINI: Final = Api.GEMINI
"""Read once: Python 3.11 finds a member of an enum by a hook of its metaclass, at ten times the price of a constant."""
_BRACKET: Final = b"["[0]
"""A number: to look for a byte by its number is ten times as fast as by bytes of one."""


def needs_of(api: Api, fields: Body, conversation: bytes) -> frozenset[Need]:
    """The needs of a body whose messages, input or prompt are `conversation`."""
    if api is not _GEMINI and _BRACKET not in conversation and _ASKING.are_absent(fields):
        return _NONE  # as most bodies are: texts, and nothing asked for beside them
    return frozenset(_needs(api, fields, conversation))


def _needs(api: Api, fields: Body, conversation: bytes) -> Iterator[Need]:
    media = {kind[1] for kind in _MEDIA_PART.finditer(conversation)} if _BRACKET in conversation else set()
    if media - _AUDIO_TYPES:
        yield Need.VISION
    if media & _AUDIO_TYPES or b'"audio"' in bytes(fields.modalities):
        yield Need.AUDIO
    if api is Api.GEMINI:
        yield from _geminis(fields, conversation)
    if not _ASKING.are_absent(fields):
        yield from _asked(api, fields)


def _asked(api: Api, fields: Body) -> Iterator[Need]:
    if given(fields.tools) or given(fields.functions):
        yield Need.TOOLS
    if _wants_logprobs(api, fields):
        yield Need.LOGPROBS
    if _wants_structure(fields):
        yield Need.STRUCTURED_OUTPUT
    if api is not Api.GEMINI:
        yield from _openais(fields)


def _geminis(fields: Body, conversation: bytes) -> Iterator[Need]:
    config = struct(GenerationConfig, fields.generationConfig)
    if _is_several(config.candidate_count):
        yield Need.SEVERAL_ANSWERS
    if given(config.response_logprobs):
        yield Need.LOGPROBS
    is_json = b"json" in bytes(config.response_mime_type)
    if is_json or given(config.response_schema) or given(config.response_json_schema):
        yield Need.STRUCTURED_OUTPUT
    media_types = {kind[1] for kind in _GEMINI_MEDIA.finditer(conversation)}
    if media_types & {b"image", b"video"}:
        yield Need.VISION
    if b"audio" in media_types:
        yield Need.AUDIO


def _openais(fields: Body) -> Iterator[Need]:
    if _is_several(fields.n) or _is_several(fields.best_of):
        yield Need.SEVERAL_ANSWERS
    if given(fields.logit_bias):
        yield Need.LOGIT_BIAS
    if _TOKENS.match(fields.prompt) or _TOKENS.match(fields.input):
        yield Need.TOKEN_PROMPT


def _is_several(number: msgspec.Raw) -> bool:
    return given(number) and bytes(number) != b"1"


def _wants_logprobs(api: Api, fields: Body) -> bool:
    if api is Api.OPENAI_COMPLETIONS and bytes(fields.logprobs) == b"0":  # the chosen token's own is still wanted
        return True
    if given(fields.logprobs) or given(fields.top_logprobs) or given(fields.prompt_logprobs):
        return True
    return given(fields.include) and b"output_text.logprobs" in bytes(fields.include)


def _wants_structure(fields: Body) -> bool:
    if _names_a_format(fields.response_format) or _names_a_format(fields.output_format):
        return True
    guided = (
        fields.structured_outputs,
        fields.guided_json,
        fields.guided_regex,
        fields.guided_choice,
        fields.guided_grammar,
    )
    if any(map(given, guided)):
        return True
    settings = (fields.text, fields.output_config)
    return any(_names_a_format(struct(TextSettings, value).format) for value in settings if given(value))


def _names_a_format(value: msgspec.Raw) -> bool:
    return given(value) and _FORMAT_TYPE.search(value) is not None
