"""The closed choices that more than one package names."""

from enum import Enum, IntEnum, auto


class Keyed(Enum):
    """An enum whose members are looked up by identity, for those that every request looks up: an enum's own hash goes
    through the member's name, in Python.
    """

    __hash__ = object.__hash__


class Api(Keyed):
    """The shape of a request body, and so the API that an answer is written in."""

    OPENAI_CHAT = "openai_chat"
    OPENAI_RESPONSES = "openai_responses"
    OPENAI_COMPLETIONS = "openai_completions"
    OPENAI_EMBEDDINGS = "openai_embeddings"
    ANTHROPIC_MESSAGES = "anthropic_messages"
    GEMINI = "gemini"
    BEDROCK_CONVERSE = "bedrock_converse"
    AZURE_OPENAI = "azure_openai"
    VERTEX_ANTHROPIC = "vertex_anthropic"
    VERTEX_GEMINI = "vertex_gemini"
    VERTEX_OPENAI = "vertex_openai"

    @property
    def shape(self) -> "Api":
        """The API that says what its bodies look like: the clouds serve others' APIs under paths of their own."""
        return _SHAPES.get(self, self)

    @property
    def at_engines(self) -> "Api":
        """The API in which an engine of ours is asked for a client of this one: its own, where engines have it."""
        return self if self in _ENGINE_APIS else Api.OPENAI_CHAT

    def speaks(self, client: "Api") -> bool:
        """Whether a client's body of that API can be served here without translation."""
        return client in _OPENAI_APIS if self is Api.AZURE_OPENAI else client is self.shape


_SHAPES = {
    Api.AZURE_OPENAI: Api.OPENAI_CHAT,
    Api.VERTEX_ANTHROPIC: Api.ANTHROPIC_MESSAGES,
    Api.VERTEX_GEMINI: Api.GEMINI,
    Api.VERTEX_OPENAI: Api.OPENAI_CHAT,
}
_OPENAI_APIS = (Api.OPENAI_CHAT, Api.OPENAI_RESPONSES, Api.OPENAI_COMPLETIONS, Api.OPENAI_EMBEDDINGS)
_ENGINE_APIS = (*_OPENAI_APIS, Api.ANTHROPIC_MESSAGES)


class Loss(Enum):
    """What happens when a translation has to leave something out; the later, the stricter."""

    SILENT = "silent"
    WARN = "warn"
    STRICT = "strict"


class Engine(Enum):
    """What serves an endpoint; `AUTO` is found out from the engine's own answers."""

    AUTO = "auto"
    VLLM = "vllm"
    SGLANG = "sglang"
    TRTLLM = "trtllm"
    TRITON = "triton"
    DYNAMO = "dynamo"
    LLAMACPP = "llamacpp"
    OPENAI = "openai"

    @property
    def extends_chat(self) -> bool:
        """Whether it takes what vLLM adds to Chat: more ways to sample, and beginnings of answers to go on from."""
        return self in _EXTENDING


_EXTENDING = (Engine.VLLM, Engine.SGLANG)


class Role(Enum):
    """What the holder of a token may do: on ports that ask for one, each request is open to some roles."""

    PICKER = "picker"
    SANDBOX = "sandbox"
    USER = "user"
    METRICS = "metrics"
    ADMIN = "admin"


class QosClass(IntEnum):
    """Numbers as in `kinference.v1.PickRequest.QosClass`; an unknown number is INTERACTIVE."""

    INTERACTIVE = 0
    BATCH = 1
    DEFERRABLE = 2


class Outcome(IntEnum):
    """Numbers as in `kinference.v1.PickResponse.Outcome`; UNSPECIFIED is never sent."""

    UNSPECIFIED = 0
    OK = 1
    NO_WORKERS = 2
    DEGRADED = 3
    BAD_REQUEST = 4
    POLICY_REJECTED = 5


class AbortReason(IntEnum):
    """Numbers as in `kinference.v1.AbortRequest.Reason`; an unknown number is UNSPECIFIED."""

    UNSPECIFIED = 0
    NOT_DISPATCHED = 1
    PULL_FAILED = 2
    BACKEND_UNRESOLVED = 3
    BACKEND_UNAUTHORIZED = 4


class StreamUsage(Keyed):
    """What a request says of the usage of its stream."""

    NOT_ASKED = auto()
    """Nothing, in an API that tells it on request."""
    REFUSED = auto()
    """It has options for its stream, which do not ask for it."""
    SETTLED = auto()
    """It asks; or there is no stream, or none whose usage is told on request."""


class Need(Keyed):
    """A capability that a request asks of whoever serves it."""

    VISION = "vision"
    AUDIO = "audio"
    TOOLS = "tools"
    LOGPROBS = "logprobs"
    STRUCTURED_OUTPUT = "structured_output"
    SEVERAL_ANSWERS = "several_answers"
    LOGIT_BIAS = "logit_bias"
    TOKEN_PROMPT = "token_prompt"  # noqa: S105 - a prompt of token numbers, no secret
