"""A stream of Messages events taken apart."""

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

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
    cited,
)
from kinference.shapes.anthropic_messages.answer import counts_of, declined, finish_of
from kinference.shapes.citations import CITATIONS_MAX, of_messages
from kinference.shapes.code_execution import Joiner, held_of
from kinference.shapes.code_execution import of_messages as of_messages_run
from kinference.shapes.failures import failure_of
from kinference.shapes.ir import Executed, Json, Sealed, ServerCall, Unread
from kinference.shapes.json_text import as_object, dumps, loads, plain
from kinference.shapes.mcp_calls import of_messages as of_messages_call
from kinference.shapes.openai_chat.answer import key_in, text_in
from kinference.shapes.scan import BadBody
from kinference.shapes.sse import Event
from kinference.shapes.web_search import made_of_messages
from kinference.vocabulary import Api

_NO_COUNTS: Final = Counts()


class _TextDelta(msgspec.Struct):
    type: Literal["text_delta"]
    text: str


class _TextEvent(msgspec.Struct):
    type: Literal["content_block_delta"]
    delta: _TextDelta


_TEXT_EVENT: Final = msgspec.json.Decoder(_TextEvent)


class _Cited(NamedTuple):
    begin: int
    found: list[Json]


class MessagesStreamParser:
    """Fed events, gives pieces. Blocks are told apart by their index."""

    def __init__(self) -> None:
        self._calls: dict[int | None, int] = {}  # by the index of their block
        self._thoughts: dict[int | None, list[str]] = {}  # the signature of each open one
        self._said = 0  # characters of text
        self._cited: dict[int | None, _Cited] = {}  # what each open block of text rests on
        self._runs: dict[int | None, tuple[Json, list[str]]] = {}  # the input of each open block of the provider's
        self._joiner = Joiner()
        self._usage: Json = {}
        self.is_complete = False
        self.is_over = False

    def text_of(self, event: Event) -> str:
        """The text of a delta of text."""
        found = plain(_TEXT_EVENT, event.data) if event.data.find(b'"text_delta"') >= 0 else None
        if found is None:
            return ""
        self._said += len(found.delta.text)
        return found.delta.text

    def counts(self) -> Counts:
        """Usage comes in events of its own."""
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
        match body.get("type"):
            case "content_block_delta":
                yield from self._delta(key_in(body, "index"), _inner(body, "delta"))
            case "message_start":
                message = _inner(body, "message")
                yield Started(text_in(message, "id"), text_in(message, "model"), self._so_far(message))
            case "content_block_start":
                yield from self._start(key_in(body, "index"), _inner(body, "content_block"))
            case "content_block_stop" if key_in(body, "index") in self._thoughts:
                signature = "".join(self._thoughts.pop(key_in(body, "index")))
                yield ReasoningEnd(signature, Api.ANTHROPIC_MESSAGES if signature else None)
            case "content_block_stop" if key_in(body, "index") in self._cited:
                begin, found = self._cited.pop(key_in(body, "index"))
                yield from map(cited, of_messages(found, begin, self._said))
            case "content_block_stop" if key_in(body, "index") in self._runs:
                block, texts = self._runs.pop(key_in(body, "index"))
                yield from self._ran(block | {"input": as_object("".join(texts)) or block.get("input")})
            case "message_delta":
                yield Counted(self._so_far(body))
                delta = _inner(body, "delta")
                yield from (RefusalPiece(refusal.text) for refusal in declined(delta.get("stop_details")))
                if delta.get("stop_reason"):
                    yield from self._joiner.rest()
                    self.is_complete = True
                    yield Finished(finish_of(delta["stop_reason"]), text_in(delta, "stop_sequence"))
            case "message_stop":
                self.is_complete = self.is_over = True
            case "error":
                yield failure_of(_inner(body, "error"))

    def _so_far(self, body: Json) -> Counts:
        """The usage with what was told before: what one event tells of the prompt is not all of it."""
        self._usage |= {name: count for name, count in _inner(body, "usage").items() if count is not None}
        return counts_of(self._usage)

    def _start(self, index: int | None, block: Json) -> Iterator[Piece]:
        match block.get("type"):
            case "tool_use":
                call = self._calls[index] = len(self._calls)
                yield ToolBegun(call, text_in(block, "id"), text_in(block, "name"))
                if block.get("input"):
                    yield ArgumentsPiece(call, dumps(block["input"]).decode())
            case "thinking":
                self._thoughts[index] = [text_in(block, "signature")]
                if thought := text_in(block, "thinking"):
                    yield ReasoningPiece(thought)
            case "redacted_thinking":
                yield Sealed(text_in(block, "data"), Api.ANTHROPIC_MESSAGES)
            case "text":
                self._cited[index] = _Cited(self._said, [])
                yield from self._text(text_in(block, "text"))
            case "server_tool_use" | "mcp_tool_use":
                self._runs[index] = (block, [])
            case str():
                yield from self._ran(block)

    def _ran(self, block: Json) -> Iterator[Piece]:
        """What only the provider runs: searches, code and what came of it, or what nobody else knows."""
        done = made_of_messages(block) or of_messages_run(block) or of_messages_call(block)
        if isinstance(done, Executed | ServerCall):
            yield from self._joiner.feed(done)
            yield from held_of(block) if isinstance(done, Executed) else ()
        else:
            yield Unread(text_in(block, "type")) if done is None else done

    def _delta(self, index: int | None, delta: Json) -> Iterator[Piece]:
        match delta.get("type"):
            case "text_delta":
                yield from self._text(text_in(delta, "text"))
            case "citations_delta" if index in self._cited and len(self._cited[index].found) < CITATIONS_MAX:
                self._cited[index].found.append(_inner(delta, "citation"))
            case "input_json_delta" if index in self._calls and (text := text_in(delta, "partial_json")):
                yield ArgumentsPiece(self._calls[index], text)
            case "input_json_delta" if index in self._runs:
                self._runs[index][1].append(text_in(delta, "partial_json"))
            case "thinking_delta" if text := text_in(delta, "thinking"):
                yield ReasoningPiece(text)
            case "signature_delta" if index in self._thoughts:
                self._thoughts[index].append(text_in(delta, "signature"))

    def _text(self, text: str) -> Iterator[Piece]:
        self._said += len(text)
        if text:
            yield TextPiece(text)


def _inner(body: Json, name: str) -> Json:
    value = body.get(name)
    return value if isinstance(value, dict) else {}
