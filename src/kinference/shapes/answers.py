"""Answers in the one internal representation: whole, and in the pieces of a stream."""

from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeAlias

import msgspec

from kinference.shapes.citations import Citation, Citations
from kinference.shapes.ir import Block, Executed, Image, Sealed, Searched, ServerCall, ServerTools, Unread
from kinference.shapes.logprobs import Logprobs
from kinference.vocabulary import Api


class NoAnswer(ValueError):
    """What a destination sent as a whole answer is none. The message is safe to show."""


class Finish(Enum):
    """Why an answer ended."""

    STOP = "stop"
    STOP_SEQUENCE = "stop_sequence"
    LENGTH = "length"
    TOOLS = "tools"
    REFUSAL = "refusal"
    PAUSE = "pause"


class Counts(msgspec.Struct, frozen=True):
    """Tokens used, the prompt's with everything in it and the completion's with its reasoning; None where not said."""

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None
    cache_written: int | None = None
    reasoning: int | None = None
    tier: str | None = None
    """By which service they were computed, in OpenAI's words: it comes beside the counts, and as late."""

    @property
    def is_unknown(self) -> bool:
        """Whether nothing was counted."""
        return self.prompt is None and self.completion is None and self.cached is None and self.reasoning is None

    def later(self, other: "Counts") -> "Counts":
        """Running totals: of each count the latest that was given holds, and nothing is summed."""
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return Counts(*(ours if theirs is None else theirs for ours, theirs in pairs))


class Answer(msgspec.Struct, frozen=True):
    """A whole answer."""

    id: str = ""
    model: str = ""
    blocks: tuple[Block, ...] = ()
    finish: Finish = Finish.STOP
    stop_sequence: str = ""
    counts: Counts = Counts()
    citations: Citations = ()
    others: "tuple[Answer, ...]" = ()
    """Further answers to the same request, where several were asked for."""
    vectors: tuple[tuple[Any, ...], ...] = ()
    """Of texts that were to be embedded."""


class Frame(msgspec.Struct, frozen=True):
    """What an answer says beside what its destination said: known to the gateway alone."""

    id: str = ""
    """Where the destination gave none; without a prefix."""
    created: int = 0
    wants_usage: bool = True
    echo: Mapping[str, Any] = {}
    """Fields of the request that the client's API repeats in its answers."""


# --- an answer that streams ------------------------------------------------------------------------


class Started(msgspec.Struct, frozen=True):
    """The answer begins."""

    id: str = ""
    model: str = ""
    counts: Counts = Counts()


class TextPiece(msgspec.Struct, frozen=True):
    text: str
    logprobs: Logprobs = ()


class Shown(msgspec.Struct, frozen=True):
    """An image that the model made."""

    image: Image


class RefusalPiece(msgspec.Struct, frozen=True):
    text: str


class ReasoningPiece(msgspec.Struct, frozen=True):
    text: str


class ReasoningEnd(msgspec.Struct, frozen=True):
    """A block of reasoning is over, and maybe signed."""

    signature: str = ""
    issuer: Api | None = None


class ToolBegun(msgspec.Struct, frozen=True):
    """A call begins; `call` counts them from 0."""

    call: int
    id: str
    name: str
    is_free_form: bool = False
    namespace: str = ""
    form: str = ""


class ArgumentsPiece(msgspec.Struct, frozen=True):
    call: int
    text: str


class Cited(msgspec.Struct, frozen=True):
    """Some of the text so far rests on a page."""

    citation: Citation


class CitedWithin(msgspec.Struct, frozen=True):
    """Some of the text so far rests on one of the request's own documents."""

    citation: Citation


class Counted(msgspec.Struct, frozen=True):
    """Usage so far, as running totals."""

    counts: Counts


class Finished(msgspec.Struct, frozen=True):
    """The model is done; usage may still come."""

    finish: Finish
    stop_sequence: str = ""


class Failed(msgspec.Struct, frozen=True):
    """The destination gave up inside its stream."""

    message: str
    kind: str = ""
    status: int = 500
    """What it would have been as an answer of its own."""


def cited(citation: Citation) -> Cited | CitedWithin:
    """The piece that tells a citation."""
    return Cited(citation) if citation.place is None else CitedWithin(citation)


Piece: TypeAlias = (
    Started
    | TextPiece
    | Shown
    | RefusalPiece
    | ReasoningPiece
    | ReasoningEnd
    | Sealed
    | ToolBegun
    | ArgumentsPiece
    | Cited
    | CitedWithin
    | Executed
    | Searched
    | ServerCall
    | ServerTools
    | Unread
    | Counted
    | Finished
    | Failed
)
