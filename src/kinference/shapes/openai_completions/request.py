"""A Completions request read into the one representation: its prompt is what the user says."""

from types import MappingProxyType
from typing import Final

from kinference.shapes.concepts import Concept, Fields, Treatment
from kinference.shapes.extras import extras
from kinference.shapes.ir import USER, Json, Request, Text, Turn
from kinference.shapes.json_text import bool_of, count_of, object_of, string_of, strings_of
from kinference.shapes.lost import Untranslatable
from kinference.shapes.openai_chat.request import answers_of, sampling_of
from kinference.shapes.scan import BadBody

MAX_TOKENS: Final = 16
"""What this API writes at most unless told otherwise."""
DEFAULTS: Final = MappingProxyType({"best_of": 1})

_KEPT, _MAPPED, _REFUSED = Treatment.KEPT, Treatment.MAPPED, Treatment.REFUSED

FIELDS: Final[Fields] = {
    "": {
        "model": _MAPPED,
        "prompt": _KEPT,
        "max_tokens": Concept.MAX_TOKENS,
        "temperature": Concept.TEMPERATURE,
        "top_p": Concept.TOP_P,
        "top_k": Concept.TOP_K,
        "min_p": Concept.MIN_P,
        "seed": Concept.SEED,
        "frequency_penalty": Concept.PENALTIES,
        "presence_penalty": Concept.PENALTIES,
        "repetition_penalty": Concept.REPETITION_PENALTY,
        "stop": Concept.STOP,
        "user": Concept.END_USER,
        "stream": _KEPT,
        "stream_options": _MAPPED,
        "n": Concept.SEVERAL_ANSWERS,
        "best_of": _REFUSED,
        "echo": _REFUSED,
        "suffix": _REFUSED,
        "logprobs": Concept.LOGPROBS,
        "logit_bias": Concept.LOGIT_BIAS,
        "cache_salt": Treatment.IGNORED,
    },
}
"""Every field of a Completions request, and what it is to other APIs."""


def parse_request(body: Json) -> Request:
    """Read a request. Raises BadBody."""
    options = object_of(body.get("stream_options") or {}, "stream_options")
    cap = count_of(body.get("max_tokens"), "max_tokens")
    return Request(
        model=string_of(body.get("model"), "model"),
        turns=(Turn(USER, (Text(_prompt(body.get("prompt"))),)),),
        max_tokens=MAX_TOKENS if cap is None else cap,
        sampling=sampling_of(body),
        stop=strings_of(body.get("stop"), "stop"),
        is_streaming=bool(bool_of(body.get("stream"), "stream")),
        wants_usage=options.get("include_usage") is True,
        answers=answers_of(body.get("n"), "n"),
        logprobs=count_of(body.get("logprobs"), "logprobs"),
        logit_bias=object_of(body.get("logit_bias") or {}, "logit_bias") or None,
        end_user=string_of(body.get("user"), "user"),
        extras=tuple(extras(body, FIELDS, "", DEFAULTS)),
    )


def _prompt(value: object) -> str:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, list) and value:
        raise Untranslatable("prompt: several prompts, or tokens, cannot go to another API")
    text = string_of(value or None, "prompt")
    if not text:
        raise BadBody("prompt: empty; the body has to carry its prompt")
    return text
