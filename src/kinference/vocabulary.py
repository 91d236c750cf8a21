"""The closed choices that more than one package names."""

from enum import Enum, IntEnum, auto


class Api(Enum):
    """The shape of a request body, and so the API that an answer is written in."""

    OPENAI_CHAT = "openai_chat"
    OPENAI_RESPONSES = "openai_responses"
    OPENAI_COMPLETIONS = "openai_completions"
    OPENAI_EMBEDDINGS = "openai_embeddings"
    ANTHROPIC_MESSAGES = "anthropic_messages"


class Engine(Enum):
    """What serves an endpoint; `AUTO` is found out from the engine's own answers."""

    AUTO = "auto"
    VLLM = "vllm"
    SGLANG = "sglang"
    TRTLLM = "trtllm"
    LLAMACPP = "llamacpp"
    OPENAI = "openai"


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


class Need(Enum):
    """A capability that a request asks of whoever serves it."""

    VISION = auto()
    AUDIO = auto()
    TOOLS = auto()
    LOGPROBS = auto()
    STRUCTURED_OUTPUT = auto()
