"""A stream of Responses events taken apart. What came in pieces is not taken again from the events that repeat it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, Literal

import msgspec

from kinference.shapes.answers import (
    ArgumentsPiece,
    Counted,
    Counts,
    Finished,
    Piece,
    ReasoningEnd,
    ReasoningPiece,
    RefusalPiece,
    Started,
    TextPiece,
    ToolBegun,
)
from kinference.shapes.failures import failure_of
from kinference.shapes.ir import Json, Reasoning, Refusal, Text, ToolCall
from kinference.shapes.json_text import loads, plain
from kinference.shapes.logprobs import of_openai
from kinference.shapes.openai_chat.answer import counts_of, key_in, text_in
from kinference.shapes.openai_responses.answer import finish_of, read_item
from kinference.shapes.scan import BadBody
from kinference.shapes.sse import Event

_PIECES: Final[Mapping[object, Callable[[str], Piece]]] = {
    "response.output_text.delta": TextPiece,
    "response.refusal.delta": RefusalPiece,
    "response.reasoning_summary_text.delta": ReasoningPiece,
    "response.reasoning_text.delta": ReasoningPiece,
}
_ARGUMENTS = ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta")
_CALLS = ("function_call", "custom_tool_call")


_NO_COUNTS: Final = Counts()


class _TextEvent(msgspec.Struct):
    """One of text without more; `logprobs` holds nothing."""

    type: Literal["response.output_text.delta"]
    delta: str
    output_index: int = 0
    logprobs: tuple[()] | None = None


_TEXT_EVENT: Final = msgspec.json.Decoder(_TextEvent)


class ResponsesStreamParser:
    """Fed events, gives pieces."""

    def __init__(self) -> None:
        self._calls: dict[int | None, int] = {}  # by the index of their item
        self._heard: set[int | None] = set()  # items of which pieces have come
        self.is_complete = False
        self.is_over = False

    def text_of(self, event: Event) -> str:
        """The text of a delta of text."""
        found = plain(_TEXT_EVENT, event.data) if b'"response.output_text.delta"' in event.data else None
        if found is None:
            return ""
        self._heard.add(found.output_index)
        return found.delta

    def counts(self) -> Counts:
        """Usage comes with the end."""
        return _NO_COUNTS

    def feed(self, event: Event) -> list[Piece]:
        """What one event means."""
        try:
            body = loads(event.data) if event.data else {}
        except BadBody:
            return []
        return list(self._event(body)) if isinstance(body, dict) and body else []

    def close(self) -> list[Piece]:
        """The stream has ended; its end is always told."""
        return []

    def _event(self, body: Json) -> Iterator[Piece]:
        kind, index = text_in(body, "type"), key_in(body, "output_index")
        if kind in _PIECES:
            self._heard.add(index)
            text = text_in(body, "delta")
            if logprobs := of_openai(body.get("logprobs")):
                yield TextPiece(text, logprobs)
            elif text:
                yield _PIECES[kind](text)
        elif kind in _ARGUMENTS:
            self._heard.add(index)
            if index in self._calls and (text := text_in(body, "delta")):
                yield ArgumentsPiece(self._calls[index], text)
        elif kind == "response.output_item.added":
            yield from self._begun(_inner(body, "item"), index)
        elif kind == "response.output_item.done":
            yield from self._done(_inner(body, "item"), index)
        elif kind == "response.created":
            response = _inner(body, "response")
            yield Started(text_in(response, "id"), text_in(response, "model"))
        elif kind in ("response.completed", "response.incomplete"):
            yield from self._ended(_inner(body, "response"))
        elif kind == "response.failed":
            yield failure_of(_inner(_inner(body, "response"), "error"))
        elif kind == "error":
            yield failure_of(_inner(body, "error") or {**body, "type": ""})

    def _begun(self, item: Json, index: int | None) -> Iterator[Piece]:
        if item.get("type") in _CALLS:
            call = self._calls[index] = len(self._calls)
            is_free_form = item["type"] == "custom_tool_call"
            yield ToolBegun(call, text_in(item, "call_id", "id"), text_in(item, "name"), is_free_form)

    def _done(self, item: Json, index: int | None) -> Iterator[Piece]:
        if index not in self._heard:
            if index not in self._calls:
                yield from self._begun(item, index)
            for block in read_item(item):
                match block:
                    case Text():
                        yield TextPiece(block.text, block.logprobs)
                    case Refusal():
                        yield RefusalPiece(block.text)
                    case Reasoning():
                        yield ReasoningPiece(block.text)
                    case ToolCall() if block.arguments:
                        yield ArgumentsPiece(self._calls[index], block.arguments)
        if item.get("type") == "reasoning":
            yield ReasoningEnd()

    def _ended(self, response: Json) -> Iterator[Piece]:
        self.is_complete = self.is_over = True
        if isinstance(response.get("usage"), dict):
            yield Counted(counts_of(response["usage"]))
        yield Finished(finish_of(response, calls=bool(self._calls)))


def _inner(body: Json, name: str) -> Json:
    value = body.get(name)
    return value if isinstance(value, dict) else {}
