"""What is asked and what is answered, said in no API's words: each client writes the one, each provider the other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Ending: TypeAlias = Literal["stop", "stop sequence", "length", "tools", "refused"]


@dataclass(frozen=True)
class Call:
    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Tokens:
    """The prompt's with those from the cache among them, the completion's with those of reasoning among them."""

    prompt: int = 30
    cached: int = 20
    completion: int = 9
    reasoning: int = 0


@dataclass(frozen=True)
class Said:
    """An answer: the thought comes before the text, and the text before the calls."""

    text: str = ""
    thought: str = ""
    signature: str = ""
    calls: tuple[Call, ...] = ()
    ending: Ending = "stop"
    stop_sequence: str = ""
    refusal: str = ""
    tokens: Tokens = Tokens()
    answers: int = 1
    """How often, as answers to the same request."""
    logprobs: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Failed:
    """An answer that is an error, by its status."""

    status: int
    message: str
    retry_after: str = ""


@dataclass(frozen=True)
class Broken:
    """A stream that says so much and then tells an error, or ends without a word."""

    said: Said
    message: str = ""


Reply: TypeAlias = Said | Failed | Broken


@dataclass(frozen=True)
class Tool:
    name: str
    description: str
    schema: dict[str, Any]


@dataclass(frozen=True)
class Picture:
    """By its bytes in base64, or where it is."""

    mime: str = "image/png"
    data: str = ""
    url: str = ""


@dataclass(frozen=True)
class Document:
    """A file by its bytes in base64."""

    data: str
    name: str = "report.pdf"
    mime: str = "application/pdf"


@dataclass(frozen=True)
class Sound:
    """A WAV file by its bytes in base64."""

    data: str


@dataclass(frozen=True)
class User:
    text: str
    pictures: tuple[Picture, ...] = ()
    documents: tuple[Document, ...] = ()
    sounds: tuple[Sound, ...] = ()


@dataclass(frozen=True)
class Result:
    call: Call
    text: str


@dataclass(frozen=True)
class Results:
    results: tuple[Result, ...]


@dataclass(frozen=True)
class Before:
    """What the assistant said earlier, as the conversation's first half tells it."""

    text: str = ""
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True)
class Replayed:
    """What a client got earlier, in its own form and unchanged."""

    form: Any


Turn: TypeAlias = User | Results | Before | Replayed


@dataclass(frozen=True)
class Asked:
    """A request."""

    turns: Sequence[Turn] = (User("Where is it warm?"),)
    system: str = ""
    tools: tuple[Tool, ...] = ()
    stop: tuple[str, ...] = ()
    schema: dict[str, Any] | None = None
    thinks: bool = False
    max_tokens: int = 2000
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further ones, as the client's own library has them."""


@dataclass(frozen=True)
class Got:
    """What the client's own objects hold."""

    text: str
    thought: str
    calls: tuple[Call, ...]
    ending: str
    """In the client's words."""
    tokens: Tokens | None
    warnings: str
    form: Any
    """To be replayed."""
