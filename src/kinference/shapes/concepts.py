"""What a request can ask for, in one vocabulary for every API, and what becomes of it at each destination's API.

A row here and the tables of fields beside each API are all that says what a translation keeps: the translation, its
warnings and the published matrix read them.
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final, TypeAlias

from kinference.vocabulary import Api, Keyed


class Treatment(Enum):
    """What becomes of something in a translation."""

    KEPT = auto()
    """The same thing under the other API's name."""
    MAPPED = auto()
    """Something of another form that means the same."""
    CLAMPED = auto()
    """As near as the other API can come; told as a loss where it makes a difference."""
    DROPPED = auto()
    """Left out, and told."""
    IGNORED = auto()
    """Left out without a word: it is about this one exchange with the API it was written for."""
    REFUSED = auto()
    """Without it the request would mean something else: a destination of that API is not chosen."""
    NEEDED = auto()
    """A destination that has it is chosen. Where none is left it is dropped, and told."""


class Concept(Keyed):
    """Something that a request can ask for; the value is what documentation calls it."""

    MAX_TOKENS = "output cap"
    TEMPERATURE = "temperature"
    TOP_P = "top_p"
    TOP_K = "top_k"
    MIN_P = "min_p"
    SEED = "seed"
    PENALTIES = "frequency and presence penalty"
    REPETITION_PENALTY = "repetition penalty"
    STOP = "stop sequences"
    TOOLS = "function tools"
    FREE_FORM_TOOLS = "free-form tools"
    GRAMMARS = "grammars of free-form tools"
    STRICT_TOOLS = "strict tool schemas"
    NO_TOOLS = "tool choice `none`"
    FORCED_TOOLS = "forced tool choice"
    ALLOWED_TOOLS = "tool choice among some"
    PARALLEL_TOOLS = "parallel tool calls off"
    WEB_SEARCH = "web search by the provider"
    EARLIER_SEARCHES = "earlier searches by the provider"
    CODE_EXECUTION = "code run by the provider"
    MCP = "tools of MCP servers that the provider calls"
    EARLIER_MCP = "earlier calls of them by a provider"
    EARLIER_CODE = "earlier code that a provider ran"
    JSON_OBJECT = "answer as a JSON object"
    JSON_SCHEMA = "answer by a JSON schema"
    THINKING = "reasoning effort or budget"
    VERBOSITY = "verbosity"
    END_USER = "end user id"
    SERVICE_TIER = "service tier"
    CACHE_KEY = "prompt cache key"
    CACHE_MARKS = "prompt cache marks"
    IMAGE = "image"
    IMAGE_URL = "image by URL"
    IMAGE_DETAIL = "image detail"
    MADE_IMAGES = "images that the model makes"
    EARLIER_IMAGES = "earlier images that a model made"
    AUDIO = "audio"
    FILE = "file"
    FILE_URL = "file by URL"
    HELD_MEDIA = "media that a provider holds"
    CITATIONS = "citations"
    OLD_REASONING = "earlier reasoning"
    SEALED_REASONING = "earlier reasoning that only its issuer can read"
    TOOL_ERRORS = "failed tool results"
    TOOL_MEDIA = "images in tool results"
    NAMES = "names of speakers"
    LATE_SYSTEM = "system text within the conversation"
    PREFILL = "beginning of the answer"
    EMBEDDINGS = "embeddings"
    SEVERAL_ANSWERS = "several answers"
    LOGPROBS = "log probabilities"
    LOGIT_BIAS = "logit bias"


Carried: TypeAlias = Concept | Treatment
"""What a field is: a way to say a concept, or a thing of its own with a treatment wherever it goes."""

Fields: TypeAlias = Mapping[str, Mapping[str, Carried]]
"""The fields of an API, by the kind of object that has them; "" is the request itself."""

_KEPT: Final = Treatment.KEPT
_MAPPED: Final = Treatment.MAPPED
_CLAMPED: Final = Treatment.CLAMPED
_DROPPED: Final = Treatment.DROPPED
_IGNORED: Final = Treatment.IGNORED
_REFUSED: Final = Treatment.REFUSED
_NEEDED: Final = Treatment.NEEDED

TARGETS: Final = (
    Api.OPENAI_CHAT,
    Api.OPENAI_RESPONSES,
    Api.ANTHROPIC_MESSAGES,
    Api.GEMINI,
    Api.BEDROCK_CONVERSE,
)
"""The APIs that a conversation can be written in, in the order of the rows below."""

_ROWS: Final[Mapping[Concept, tuple[Treatment, ...]]] = {
    # concept: chat, responses, messages, gemini, converse
    Concept.MAX_TOKENS: (_KEPT, _CLAMPED, _CLAMPED, _KEPT, _CLAMPED),
    Concept.TEMPERATURE: (_KEPT, _KEPT, _CLAMPED, _KEPT, _CLAMPED),
    Concept.TOP_P: (_KEPT, _KEPT, _KEPT, _KEPT, _KEPT),
    Concept.TOP_K: (_CLAMPED, _DROPPED, _KEPT, _KEPT, _KEPT),
    Concept.MIN_P: (_CLAMPED, _DROPPED, _DROPPED, _DROPPED, _DROPPED),
    Concept.SEED: (_KEPT, _DROPPED, _DROPPED, _KEPT, _DROPPED),
    Concept.PENALTIES: (_KEPT, _DROPPED, _DROPPED, _CLAMPED, _DROPPED),
    Concept.REPETITION_PENALTY: (_CLAMPED, _DROPPED, _DROPPED, _DROPPED, _DROPPED),
    Concept.STOP: (_CLAMPED, _DROPPED, _CLAMPED, _CLAMPED, _KEPT),
    Concept.TOOLS: (_KEPT, _KEPT, _KEPT, _KEPT, _KEPT),
    Concept.FREE_FORM_TOOLS: (_KEPT, _KEPT, _MAPPED, _MAPPED, _MAPPED),
    Concept.GRAMMARS: (_KEPT, _KEPT, _CLAMPED, _CLAMPED, _CLAMPED),
    Concept.STRICT_TOOLS: (_CLAMPED, _CLAMPED, _CLAMPED, _DROPPED, _CLAMPED),
    Concept.NO_TOOLS: (_KEPT, _KEPT, _KEPT, _KEPT, _CLAMPED),
    Concept.FORCED_TOOLS: (_KEPT, _KEPT, _CLAMPED, _KEPT, _CLAMPED),
    Concept.ALLOWED_TOOLS: (_KEPT, _KEPT, _CLAMPED, _KEPT, _MAPPED),
    Concept.PARALLEL_TOOLS: (_KEPT, _KEPT, _KEPT, _DROPPED, _CLAMPED),
    Concept.WEB_SEARCH: (_CLAMPED, _CLAMPED, _CLAMPED, _CLAMPED, _NEEDED),
    Concept.EARLIER_SEARCHES: (_MAPPED, _MAPPED, _MAPPED, _MAPPED, _MAPPED),
    Concept.CODE_EXECUTION: (_NEEDED, _KEPT, _KEPT, _KEPT, _NEEDED),
    Concept.MCP: (_NEEDED, _KEPT, _KEPT, _NEEDED, _NEEDED),
    Concept.EARLIER_MCP: (_MAPPED, _MAPPED, _MAPPED, _MAPPED, _MAPPED),
    Concept.EARLIER_CODE: (_MAPPED, _MAPPED, _MAPPED, _MAPPED, _MAPPED),
    Concept.JSON_OBJECT: (_KEPT, _KEPT, _CLAMPED, _KEPT, _CLAMPED),
    Concept.JSON_SCHEMA: (_CLAMPED, _CLAMPED, _CLAMPED, _CLAMPED, _CLAMPED),
    Concept.THINKING: (_CLAMPED, _CLAMPED, _CLAMPED, _MAPPED, _CLAMPED),
    Concept.VERBOSITY: (_KEPT, _KEPT, _DROPPED, _DROPPED, _DROPPED),
    Concept.END_USER: (_KEPT, _KEPT, _CLAMPED, _IGNORED, _IGNORED),
    Concept.SERVICE_TIER: (_KEPT, _KEPT, _CLAMPED, _CLAMPED, _CLAMPED),
    Concept.CACHE_KEY: (_KEPT, _KEPT, _IGNORED, _IGNORED, _IGNORED),
    Concept.CACHE_MARKS: (_MAPPED, _MAPPED, _KEPT, _IGNORED, _KEPT),
    Concept.IMAGE: (_KEPT, _KEPT, _KEPT, _KEPT, _KEPT),
    Concept.IMAGE_URL: (_KEPT, _KEPT, _KEPT, _KEPT, _REFUSED),
    Concept.IMAGE_DETAIL: (_KEPT, _KEPT, _IGNORED, _MAPPED, _IGNORED),
    Concept.MADE_IMAGES: (_CLAMPED, _KEPT, _REFUSED, _CLAMPED, _REFUSED),
    Concept.EARLIER_IMAGES: (_MAPPED, _MAPPED, _MAPPED, _KEPT, _MAPPED),
    Concept.AUDIO: (_KEPT, _REFUSED, _REFUSED, _KEPT, _KEPT),
    Concept.FILE: (_KEPT, _KEPT, _KEPT, _KEPT, _KEPT),
    Concept.FILE_URL: (_REFUSED, _KEPT, _KEPT, _KEPT, _REFUSED),
    Concept.HELD_MEDIA: (_REFUSED, _REFUSED, _REFUSED, _REFUSED, _REFUSED),
    Concept.CITATIONS: (_DROPPED, _DROPPED, _KEPT, _DROPPED, _KEPT),
    Concept.OLD_REASONING: (_KEPT, _DROPPED, _DROPPED, _DROPPED, _DROPPED),
    Concept.SEALED_REASONING: (_DROPPED, _DROPPED, _DROPPED, _DROPPED, _DROPPED),
    Concept.TOOL_ERRORS: (_IGNORED, _IGNORED, _KEPT, _KEPT, _KEPT),
    Concept.TOOL_MEDIA: (_MAPPED, _MAPPED, _KEPT, _MAPPED, _KEPT),
    Concept.NAMES: (_KEPT, _IGNORED, _DROPPED, _IGNORED, _IGNORED),
    Concept.LATE_SYSTEM: (_KEPT, _KEPT, _MAPPED, _MAPPED, _MAPPED),
    Concept.EMBEDDINGS: (_REFUSED, _REFUSED, _REFUSED, _KEPT, _KEPT),
    Concept.SEVERAL_ANSWERS: (_KEPT, _REFUSED, _REFUSED, _KEPT, _REFUSED),
    Concept.LOGPROBS: (_CLAMPED, _CLAMPED, _REFUSED, _CLAMPED, _REFUSED),
    Concept.LOGIT_BIAS: (_KEPT, _REFUSED, _REFUSED, _REFUSED, _REFUSED),
    Concept.PREFILL: (_CLAMPED, _CLAMPED, _KEPT, _REFUSED, _KEPT),
}


_COLUMNS: Final[Mapping[Api, Mapping[Concept, Treatment]]] = {
    target: {concept: row[at] for concept, row in _ROWS.items()} for at, target in enumerate(TARGETS)
}


_NEAR: Final[Mapping[Concept, Concept]] = {Concept.IMAGE_URL: Concept.IMAGE, Concept.FILE_URL: Concept.FILE}
"""Told of under another's name where an API has one name for both."""


def treatment(concept: Concept, target: Api) -> Treatment:
    """What becomes of a concept at an API, one of TARGETS."""
    return _COLUMNS[target][concept]


def as_named(fields: Fields, body: Mapping[str, object]) -> Fields:
    """The same fields, those first under whose names a body asks for things: some have more names than one."""
    whole = fields[""]
    return {**fields, "": {**{name: whole[name] for name in body if name in whole}, **whole}}


def name_of(concept: Concept, fields: Fields) -> str:
    """What an API calls a concept: the field, or the kind of object, that says it."""
    for kind, members in fields.items():
        for name, carried in members.items():
            if carried is concept:
                return f"{kind}.{name}" if kind else name
    if concept in _NEAR:
        return name_of(_NEAR[concept], fields)
    return str(concept.value)
