"""The one internal representation of a conversation: what every API's request is read into and written
from.

Values only. Whatever an API cannot say is left at its default; what no other API could say either is not here at all
but in the tables of losses.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from itertools import chain
from operator import attrgetter
from typing import Any, Final, TypeAlias

import msgspec

from kinference.vocabulary import Api

Json: TypeAlias = dict[str, Any]
"""A decoded JSON object: integers of any size, fractions as decimals."""


class Role(Enum):
    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"


USER: Final = Role.USER
ASSISTANT: Final = Role.ASSISTANT
SYSTEM: Final = Role.SYSTEM
"""Read once: Python 3.11 finds a member of an enum by a hook of its metaclass, at ten times the price of a constant."""


class CacheMark(msgspec.Struct, frozen=True):
    """The prompt may be cached up to here. `ttl` is as the client wrote it."""

    ttl: str = ""


class Media(msgspec.Struct, frozen=True):
    """Bytes in base64, or where they are: exactly one of `data`, `url` and `file_id` is given."""

    mime: str = ""
    data: str = ""
    url: str = ""
    file_id: str = ""


class Text(msgspec.Struct, frozen=True):
    text: str
    cache: CacheMark | None = None
    logprobs: tuple[Json, ...] = ()
    """Of an answer's tokens, where they were asked for: see `logprobs`."""


class Image(msgspec.Struct, frozen=True):
    source: Media
    detail: str = ""
    cache: CacheMark | None = None


class Audio(msgspec.Struct, frozen=True):
    source: Media


class File(msgspec.Struct, frozen=True):
    """A document. One of plain text has it in `text` and no source."""

    source: Media
    name: str = ""
    text: str = ""
    cites: bool = False
    """The client wants citations out of it."""
    cache: CacheMark | None = None


class ToolCall(msgspec.Struct, frozen=True):
    """`arguments` is the JSON text as the model or the client wrote it; of a free-form tool it is the bare input."""

    id: str
    name: str
    arguments: str
    is_free_form: bool = False
    cache: CacheMark | None = None
    namespace: str = ""
    """Of its tool, where the client is to be told both; the name is the tool's within it then."""
    form: str = ""
    """As of its tool."""


class ToolResult(msgspec.Struct, frozen=True):
    id: str
    content: "tuple[Block, ...]" = ()
    is_error: bool = False
    cache: CacheMark | None = None


class Reasoning(msgspec.Struct, frozen=True):
    """What the model thought. A signature means something to its issuer alone."""

    text: str
    signature: str = ""
    issuer: Api | None = None


class Sealed(msgspec.Struct, frozen=True):
    """Reasoning that only its issuer can read."""

    data: str
    issuer: Api


class Searched(msgspec.Struct, frozen=True):
    """A search of the web that a provider made, or what it found; Messages tells the one without the other. Of a search
    for anything else both are empty.
    """

    queries: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()


class Executed(msgspec.Struct, frozen=True):
    """Code that the provider ran, and what came of it; within what it tells, one half may come without the other."""

    id: str = ""
    code: str = ""
    output: str = ""
    has_failed: bool = False


class ServerCall(msgspec.Struct, frozen=True):
    """A call of an MCP server's tool that the provider made, and what came of it; Messages tells the one without the
    other, which has no name then.
    """

    id: str = ""
    server: str = ""
    name: str = ""
    arguments: str = ""
    output: str = ""
    has_failed: bool = False


class ServerTools(msgspec.Struct, frozen=True):
    """What an MCP server was found to offer, each with the members `name`, `description` and `input_schema`."""

    server: str
    tools: tuple[Json, ...] = ()


class Refusal(msgspec.Struct, frozen=True):
    text: str


class Unread(msgspec.Struct, frozen=True):
    """Part of an answer that no other API has a form for, by the name that its own API has for its kind."""

    kind: str


Block: TypeAlias = (
    Text
    | Image
    | Audio
    | File
    | ToolCall
    | ToolResult
    | Reasoning
    | Sealed
    | Searched
    | Executed
    | ServerCall
    | ServerTools
    | Refusal
    | Unread
)


class Turn(msgspec.Struct, frozen=True):
    role: Role
    blocks: tuple[Block, ...]
    name: str = ""


def blocks_of(turns: Iterable[Turn]) -> Iterator[Block]:
    """All blocks, in order."""
    return chain.from_iterable(map(_BLOCKS, turns))


def kinds_of(turns: Iterable[Turn]) -> set[type[Block]]:
    """The kinds of blocks that there are: most conversations have few, and what they lack need not be looked for."""
    return set(map(type, blocks_of(turns)))


_BLOCKS: Final[Callable[[Turn], tuple[Block, ...]]] = attrgetter("blocks")
"""With which a conversation is gone through without a step of Python's for each block."""


class Simple(msgspec.Struct, frozen=True):
    """Turns that were seen to hold nothing but words, calls of functions and their results: see `simple`."""

    turns: tuple[Turn, ...]
    alternates: bool
    """User and assistant take turns."""


class Grammar(msgspec.Struct, frozen=True):
    """`syntax` says in what language the definition is."""

    syntax: str
    definition: str


class Tool(msgspec.Struct, frozen=True):
    """A function that the model may call; a free-form one takes text in place of an object."""

    name: str
    description: str = ""
    schema: Json | None = None
    strict: bool | None = None
    is_free_form: bool = False
    grammar: Grammar | None = None
    """What the text of a free-form one has to obey."""
    cache: CacheMark | None = None
    namespace: str = ""
    """Which its name begins with, where the client calls it by both apart."""
    form: str = ""
    """The kind of tool of the client's API that it stands for, where its calls are of a kind of their own there."""


class WebSearch(msgspec.Struct, frozen=True):
    """A search of the web that the provider makes itself: of some sites alone or of all but some, for somebody at a
    place, with so much of what is found in the context, and so often at most.
    """

    allowed: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    place: Json = {}
    size: str = ""
    uses: int | None = None
    is_cached: bool = False
    """Only what the provider has stored is to be searched, which no other can."""
    extras: tuple[str, ...] = ()
    """Members that were given and that no other API has."""


class McpServer(msgspec.Struct, frozen=True):
    """A server whose tools the provider calls itself: those allowed alone, where there is a list."""

    name: str
    url: str
    token: str = ""
    allowed: tuple[str, ...] | None = None


class ToolMode(Enum):
    AUTO = "auto"
    NONE = "none"
    REQUIRED = "required"


class ToolChoice(msgspec.Struct, frozen=True):
    """Which tools may or must be called: the named ones only, where there are names."""

    mode: ToolMode
    names: tuple[str, ...] = ()
    is_list: bool = False
    """The client gave a list, and not the one name of what has to be called."""

    @property
    def offered(self) -> tuple[str, ...]:
        """Those that alone may be called, where there is a choice left; () where it is among all."""
        return self.names if self.is_list or len(self.names) > 1 or self.mode is ToolMode.AUTO else ()


class Effort(Enum):
    """How much the model may think, least first; the budget of each is what the vendors' own tables say."""

    NONE = ("none", 0)
    MINIMAL = ("minimal", 1024)
    LOW = ("low", 1024)
    MEDIUM = ("medium", 2048)
    HIGH = ("high", 4096)
    XHIGH = ("xhigh", 8192)
    MAX = ("max", 16384)

    @property
    def word(self) -> str:
        return self.value[0]

    @property
    def budget(self) -> int:
        return self.value[1]

    @classmethod
    def within(cls, budget: int) -> "Effort":
        """The least effort that thinks as long as this many tokens."""
        return next(
            (effort for effort in (cls.LOW, cls.MEDIUM, cls.HIGH, cls.XHIGH) if effort.budget >= budget), cls.MAX
        )


class Thinking(msgspec.Struct, frozen=True):
    """How much to think, by word or by tokens, and whether the client wants to see it."""

    effort: Effort
    budget: int | None = None
    is_shown: bool = False


class FormatKind(Enum):
    JSON_OBJECT = "json_object"
    JSON_SCHEMA = "json_schema"


class Format(msgspec.Struct, frozen=True):
    """The form of the answer, where it is not plain text."""

    kind: FormatKind
    name: str = ""
    schema: Json | None = None
    strict: bool | None = None
    description: str = ""
    is_choice: bool = False
    """The client wants the one word in the object, and not the object."""


class Sampling(msgspec.Struct, frozen=True):
    """Numbers that shape sampling, as they were written."""

    temperature: Any = None
    top_p: Any = None
    top_k: Any = None
    min_p: Any = None
    seed: Any = None
    frequency_penalty: Any = None
    presence_penalty: Any = None
    repetition_penalty: Any = None


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request. Leading system text is in `system`; what operators say later stays where it was said."""

    model: str = ""
    system: tuple[Text, ...] = ()
    is_system_named: bool = False
    """Whoever speaks there has a name."""
    turns: tuple[Turn, ...] = ()
    simple: Simple | None = None
    """Holds of the very turns that it names, and says nothing of any that took their place."""
    tools: tuple[Tool, ...] = ()
    web_search: WebSearch | None = None
    mcp: tuple[McpServer, ...] = ()
    runs_code: bool = False
    """The provider may run code."""
    wants_images: bool = False
    """The answer may have images that the model makes."""
    tool_choice: ToolChoice | None = None
    parallel_tools: bool | None = None
    max_tokens: int | None = None
    is_plain_chat: bool = False
    """Whether the destination speaks Chat for a model that is not OpenAI's, and may not know what is newer in it: the
    cap's present name, tools that are no functions.
    """
    is_extended_chat: bool = False
    """Whether what vLLM adds to Chat is known there."""
    sampling: Sampling = Sampling()
    answers: int = 1
    """How many answers to the same request are wanted."""
    logprobs: int | None = None
    """How many of the likeliest tokens are wanted beside each, with their probabilities; None: none of it."""
    logit_bias: Json | None = None
    stop: tuple[str, ...] = ()
    thinking: Thinking | None = None
    format: Format | None = None
    is_streaming: bool = False
    wants_usage: bool = False
    """The client asked for the usage of a stream, where its API makes that a wish."""
    end_user: str = ""
    service_tier: str = ""
    cache_key: str = ""
    verbosity: str = ""
    inputs: tuple[str, ...] = ()
    """Texts to be embedded, in place of a conversation."""
    dimensions: int | None = None
    extras: tuple[str, ...] = ()
    """Fields that were given and that no other API has, as the client's API names them."""


_THOUGHTS: Final = frozenset({Reasoning, Sealed})


def begins_answer(request: Request) -> bool:
    """Whether the conversation ends with what the assistant's answer is to begin with."""
    last = request.turns[-1] if request.turns else None
    if last is None or last.role is not ASSISTANT:
        return False
    kinds = set(map(type, last.blocks))
    return ToolCall not in kinds and not kinds <= _THOUGHTS  # and one who says nothing begins nothing


def is_simple(request: Request) -> bool:
    """Whether the turns that the request has now were seen to be simple."""
    return request.simple is not None and request.simple.turns is request.turns
