"""A stream of generateContent responses taken apart: each brings what is new, and calls come whole."""

from collections.abc import Iterator

from kinference.shapes.answers import (
    ArgumentsPiece,
    Counted,
    Finish,
    Finished,
    Piece,
    ReasoningPiece,
    Started,
    TextPiece,
    ToolBegun,
)
from kinference.shapes.failures import failure_of
from kinference.shapes.gemini.answer import blocks_of, candidate_of, counts_of, finish_of, is_blocked
from kinference.shapes.ir import Json, Reasoning, Text, ToolCall
from kinference.shapes.json_text import loads
from kinference.shapes.openai_chat.answer import text_in
from kinference.shapes.scan import BadBody
from kinference.shapes.sse import Event


class GeminiStreamParser:
    """Fed events, gives pieces. There is no last event: the stream ends with its connection."""

    def __init__(self) -> None:
        self._answer_id = ""
        self._is_started = False
        self._calls = 0
        self._finish: Finish | None = None
        self.is_complete = False
        self.is_over = False

    def feed(self, event: Event) -> list[Piece]:
        """What one event means."""
        try:
            body = loads(event.data) if event.data else {}
        except BadBody:
            return []
        return list(self._response(body)) if isinstance(body, dict) and body else []

    def close(self) -> list[Piece]:
        """The stream has ended: why the model did."""
        return [] if self._finish is None else [Finished(self._finish)]

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
                    yield TextPiece(block.text)
                case Reasoning():
                    yield ReasoningPiece(block.text)
                case ToolCall():
                    yield ToolBegun(self._calls, block.id, block.name)
                    yield ArgumentsPiece(self._calls, block.arguments)
                    self._calls += 1
        if isinstance(body.get("usageMetadata"), dict):
            yield Counted(counts_of(body["usageMetadata"]))
        self._end(candidate.get("finishReason"), is_refused=is_blocked(body))

    def _end(self, reason: object, *, is_refused: bool) -> None:
        """Remember why it ended: what follows may still bring usage, and a call may have come long before."""
        if is_refused or (isinstance(reason, str) and reason != "FINISH_REASON_UNSPECIFIED"):
            self.is_complete = True
            self._finish = Finish.REFUSAL if is_refused else finish_of(reason, calls=self._calls > 0)
