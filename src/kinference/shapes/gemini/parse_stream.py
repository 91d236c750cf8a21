"""A stream of generateContent responses taken apart: each brings what is new, and calls come whole."""

from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from kinference.shapes.answers import (
    ArgumentsPiece,
    Cited,
    Counted,
    Counts,
    Finish,
    Finished,
    Piece,
    ReasoningPiece,
    RefusalPiece,
    Shown,
    Started,
    TextPiece,
    ToolBegun,
)
from kinference.shapes.citations import CITATIONS_MAX, Citation, of_gemini
from kinference.shapes.code_execution import Joiner
from kinference.shapes.failures import failure_of, unlisted
from kinference.shapes.gemini.answer import blocks_of, candidate_of, counts_of, finish_of, is_blocked, why_blocked
from kinference.shapes.ir import Executed, Image, Json, Reasoning, Sealed, Text, ToolCall, Unread
from kinference.shapes.json_text import loads, plain
from kinference.shapes.openai_chat.answer import text_in
from kinference.shapes.scan import BadBody
from kinference.shapes.sse import Event

_NO_USAGE: Final = msgspec.Raw(b"null")
_NO_COUNTS: Final = Counts()


class _Part(msgspec.Struct):
    """One that holds text alone: what else it could hold is not there, or null."""

    text: str
    thought: Literal[False] = False
    thoughtSignature: Literal[""] | None = None  # noqa: N815 - as the API spells it
    inlineData: None = None  # noqa: N815 - as the API spells it
    functionCall: None = None  # noqa: N815 - as the API spells it


class _Content(msgspec.Struct):
    parts: tuple[_Part]


class _Candidate(msgspec.Struct):
    content: _Content
    index: int = 0
    finishReason: None = None  # noqa: N815 - as the API spells it
    logprobsResult: None = None  # noqa: N815 - as the API spells it
    groundingMetadata: None = None  # noqa: N815 - as the API spells it
    citationMetadata: None = None  # noqa: N815 - as the API spells it


class _TextResponse(msgspec.Struct):
    candidates: tuple[_Candidate]
    usageMetadata: msgspec.Raw = _NO_USAGE  # noqa: N815 - as the API spells it
    promptFeedback: None = None  # noqa: N815 - as the API spells it
    error: None = None


_TEXT_RESPONSE: Final = msgspec.json.Decoder(_TextResponse)


class GeminiStreamParser:
    """Fed events, gives pieces. There is no last event: the stream ends with its connection."""

    def __init__(self) -> None:
        self._answer_id = ""
        self._is_started = False
        self._calls = 0
        self._said: list[str] = []
        self._cited: dict[Citation, None] = {}
        self._joiner = Joiner()
        self._finish: Finish | None = None
        self._usage = _NO_USAGE  # of the last piece of text
        self.is_complete = False
        self.is_over = False

    def text_of(self, event: Event) -> str:
        """The text of a response that brings nothing else; its usage is only looked at when it is asked for."""
        found = plain(_TEXT_RESPONSE, event.data) if event.data.find(b'"text"') >= 0 else None
        if found is None or found.candidates[0].index:
            return ""
        self._usage = found.usageMetadata
        text = found.candidates[0].content.parts[0].text
        self._said.append(text)
        return text

    def counts(self) -> Counts:
        """The usage that came with the last piece of text."""
        return counts_of(loads(bytes(self._usage)))

    def feed(self, event: Event) -> list[Piece]:
        """What one event means."""
        try:
            body = unlisted(loads(event.data)) if event.data else {}
        except BadBody:
            return []
        return list(self._response(body)) if isinstance(body, dict) and body else []

    def close(self) -> list[Piece]:
        """The stream has ended: why the model did."""
        if self._finish is None:
            return []
        held, self._usage = self.counts(), _NO_USAGE
        return [*self._joiner.rest(), *([Counted(held)] if held != _NO_COUNTS else ()), Finished(self._finish)]

    def _response(self, body: Json) -> Iterator[Piece]:
        if isinstance(body.get("error"), dict):
            yield failure_of(body["error"])
            return
        if not self._is_started:
            self._is_started = True
            self._answer_id = text_in(body, "responseId")
            yield Started(self._answer_id, text_in(body, "modelVersion"), counts_of(body.get("usageMetadata")))
        candidate = candidate_of(body)
        for block in blocks_of(candidate, self._answer_id, self._calls):
            match block:
                case Text():
                    self._said.append(block.text)
                    yield TextPiece(block.text, block.logprobs)
                case Image():
                    yield Shown(block)
                case Reasoning():
                    yield ReasoningPiece(block.text)
                case Sealed() | Unread():
                    yield block
                case Executed():
                    yield from self._joiner.feed(block)
                case ToolCall():
                    yield ToolBegun(self._calls, block.id, block.name)
                    yield ArgumentsPiece(self._calls, block.arguments)
                    self._calls += 1
        yield from (RefusalPiece(refusal.text) for refusal in why_blocked(body))
        yield from self._rests(candidate)
        if isinstance(body.get("usageMetadata"), dict):
            self._usage = _NO_USAGE
            yield Counted(counts_of(body["usageMetadata"]))
        self._end(candidate.get("finishReason"), is_refused=is_blocked(body))

    def _rests(self, candidate: Json) -> Iterator[Piece]:
        """The pages that what was said rests on, each once however often it is told."""
        if not candidate.get("groundingMetadata") and not candidate.get("citationMetadata"):
            return
        for citation in of_gemini(candidate, "".join(self._said)):
            if citation not in self._cited and len(self._cited) < CITATIONS_MAX:
                self._cited[citation] = None
                yield Cited(citation)

    def _end(self, reason: object, *, is_refused: bool) -> None:
        """Remember why it ended: what follows may still bring usage, and a call may have come long before."""
        if is_refused or (isinstance(reason, str) and reason != "FINISH_REASON_UNSPECIFIED"):
            self.is_complete = True
            self._finish = Finish.REFUSAL if is_refused else finish_of(reason, calls=self._calls > 0)
