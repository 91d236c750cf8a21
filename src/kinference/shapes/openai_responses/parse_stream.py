"""A stream of Responses events taken apart. What came in pieces is not taken again from the events that repeat it."""

from collections import Counter
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

import msgspec

from kinference.shapes import mcp_calls, web_search
from kinference.shapes.answers import (
    ArgumentsPiece,
    Cited,
    Counted,
    Counts,
    Finished,
    Piece,
    ReasoningEnd,
    ReasoningPiece,
    RefusalPiece,
    Shown,
    Started,
    TextPiece,
    ToolBegun,
)
from kinference.shapes.citations import CITATIONS_MAX, held_in
from kinference.shapes.citations import of_openai as of_openai_annotations
from kinference.shapes.code_execution import RESPONSES_ITEM
from kinference.shapes.failures import failure_of
from kinference.shapes.ir import Executed, Image, Json, Sealed, Searched, ServerCall, ServerTools, Unread
from kinference.shapes.json_text import loads, plain
from kinference.shapes.logprobs import Logprobs, of_openai
from kinference.shapes.made_images import CALL, of_responses
from kinference.shapes.openai_chat.answer import counts_of, key_in, text_in
from kinference.shapes.openai_responses.answer import BETWEEN_PARTS, finish_of, read_item
from kinference.shapes.scan import BadBody
from kinference.shapes.sse import Event
from kinference.vocabulary import Api

_ARGUMENTS: Final = ("function_call_arguments", "custom_tool_call_input")
_THOUGHTS: Final = ("reasoning_summary_text", "reasoning_text")
_PARTS: Final = ("output_text", "refusal", *_THOUGHTS, *_ARGUMENTS)
"""What comes in deltas and again whole: the middle of the names of both events."""
_WHOLE: Final = ("text", "refusal", "arguments", "input")
"""Where such an event has the whole."""
_CALLS = ("function_call", "custom_tool_call")
_WHOLE_ITEMS: Final = (
    RESPONSES_ITEM,
    web_search.RESPONSES_ITEM,
    mcp_calls.RESPONSES_CALL,
    mcp_calls.RESPONSES_LISTING,
)
"""Of what a provider did itself, read where it is done."""


_NO_COUNTS: Final = Counts()


class _TextEvent(msgspec.Struct):
    """One of text without more; `logprobs` holds nothing."""

    type: Literal["response.output_text.delta"]
    delta: str
    output_index: int = 0
    content_index: int = 0
    logprobs: tuple[()] | None = None


_TEXT_EVENT: Final = msgspec.json.Decoder(_TextEvent)


class _Part(NamedTuple):
    item: int | None
    name: str
    at: int = 0


class ResponsesStreamParser:
    """Fed events, gives pieces."""

    def __init__(self) -> None:
        self._calls: dict[int | None, int] = {}  # by the index of their item
        self._call_ids: set[str] = set()
        self._heard: dict[_Part, int] = {}  # how many characters of each have come
        self._cited = Counter[_Part]()  # how many pages of each were told
        self.is_complete = False
        self.is_over = False

    def text_of(self, event: Event) -> str:
        """The text of a delta of text."""
        found = plain(_TEXT_EVENT, event.data) if event.data.find(b'"response.output_text.delta"') >= 0 else None
        if found is None:
            return ""
        part = _Part(found.output_index, "output_text", found.content_index)
        self._heard[part] = self._heard.get(part, 0) + len(found.delta)
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
        name, _, event = kind.removeprefix("response.").partition(".")
        if name in _PARTS:
            part = _Part(index, name, key_in(body, "content_index") or key_in(body, "summary_index") or 0)
            logprobs = of_openai(body.get("logprobs"))
            if event == "delta":
                yield from self._more(part, text_in(body, "delta"), logprobs)
            elif event == "done":
                yield from self._whole(part, text_in(body, *_WHOLE), logprobs)
            elif event == "annotation.added":
                yield from self._rests(part, [body.get("annotation")])
        elif kind == "response.output_item.added":
            yield from self._begun(_inner(body, "item"), index)
        elif kind == "response.output_item.done":
            yield from self._done(_inner(body, "item"), index)
        elif kind == "response.created":
            response = _inner(body, "response")
            counts = counts_of(None, response.get("service_tier"))
            yield Started(text_in(response, "id"), text_in(response, "model"), counts)
        elif kind in ("response.completed", "response.incomplete"):
            yield from self._ended(_inner(body, "response"))
        elif kind == "response.failed":
            yield failure_of(_inner(_inner(body, "response"), "error"))
        elif kind == "error":
            yield failure_of(_inner(body, "error") or {**body, "type": ""})

    def _begun(self, item: Json, index: int | None) -> Iterator[Piece]:
        if item.get("type") in _CALLS:
            call = self._calls[index] = len(self._calls)
            is_free_form, call_id = item["type"] == "custom_tool_call", text_in(item, "call_id", "id")
            self._call_ids.add(call_id)
            yield ToolBegun(call, call_id, text_in(item, "name"), is_free_form)

    def _more(self, part: _Part, text: str, logprobs: Logprobs = ()) -> Iterator[Piece]:
        """The next text of a part."""
        if not text and not logprobs:
            return
        is_another = part.at > 0 and part not in self._heard
        if part.name in _ARGUMENTS and part.item not in self._calls:
            return  # its item has not begun: it will come whole
        self._heard[part] = self._heard.get(part, 0) + len(text)
        if part.name == "output_text":
            yield TextPiece(text, logprobs)
        elif part.name == "refusal":
            yield RefusalPiece(text)
        elif part.name in _THOUGHTS:
            yield ReasoningPiece(BETWEEN_PARTS + text if is_another else text)
        else:
            yield ArgumentsPiece(self._calls[part.item], text)

    def _whole(self, part: _Part, text: str, logprobs: Logprobs = ()) -> Iterator[Piece]:
        """All of a part, of which most often all has come."""
        heard = self._heard.get(part, 0)
        yield from self._more(part, text[heard:], () if heard else logprobs)

    def _rests(self, part: _Part, annotations: list[object]) -> Iterator[Piece]:
        """The pages that a part rests on: each is told by itself, and most often again with the whole."""
        yield from map(Unread, held_in(annotations))
        before = sum(count for other, count in self._heard.items() if other.name == part.name and other != part)
        for citation in of_openai_annotations(annotations, before):
            if self._cited.total() < CITATIONS_MAX:
                self._cited[part] += 1
                yield Cited(citation)

    def _done(self, item: Json, index: int | None) -> Iterator[Piece]:
        kind = item.get("type")
        if kind in _CALLS:
            if index not in self._calls:
                yield from self._begun(item, index)
            name = _ARGUMENTS[_CALLS.index(kind)]
            yield from self._whole(_Part(index, name), text_in(item, "arguments", "input"))
        elif kind == "message":
            for at, part in enumerate(_parts(item, "content")):
                logprobs = of_openai(part.get("logprobs"))
                yield from self._whole(_Part(index, "output_text", at), text_in(part, "text"), logprobs)
                yield from self._whole(_Part(index, "refusal", at), text_in(part, "refusal"))
                annotations = part.get("annotations")
                if isinstance(annotations, list) and not self._cited[_Part(index, "output_text", at)]:
                    yield from self._rests(_Part(index, "output_text", at), annotations)
        elif kind == CALL:
            yield from map(Shown, of_responses(item))
        elif kind == "reasoning":
            for name, place in zip(_THOUGHTS, ("summary", "content"), strict=True):
                for at, part in enumerate(_parts(item, place)):
                    yield from self._whole(_Part(index, name, at), text_in(part, "text"))
            yield from self._sealed(index, text_in(item, "encrypted_content"))
        elif kind in _WHOLE_ITEMS:
            for block in read_item(item):
                if isinstance(block, Executed | Searched | ServerCall | ServerTools | Unread):
                    yield block
                elif isinstance(block, Image):
                    yield Shown(block)
        elif isinstance(kind, str):
            yield Unread(kind)

    def _sealed(self, index: int | None, seal: str) -> Iterator[Piece]:
        """The end of a thought, which its issuer may have sealed and may have told nothing of."""
        if any(part.item == index for part in self._heard):
            yield ReasoningEnd(seal, Api.OPENAI_RESPONSES if seal else None)
        elif seal:
            yield Sealed(seal, Api.OPENAI_RESPONSES)

    def _ended(self, response: Json) -> Iterator[Piece]:
        self.is_complete = self.is_over = True
        is_told = bool(self._heard or self._calls)  # else all of it comes at once
        for at, item in enumerate(_parts(response, "output")):
            if not is_told:
                yield from self._done(item, at)
            elif item.get("type") in _CALLS and text_in(item, "call_id", "id") not in self._call_ids:
                yield from self._done(item, -1 - at)  # in the place of none that came
        counts = counts_of(response.get("usage"), response.get("service_tier"))
        if counts != _NO_COUNTS:
            yield Counted(counts)
        yield Finished(finish_of(response, calls=bool(self._calls)))


def _inner(body: Json, name: str) -> Json:
    value = body.get(name)
    return value if isinstance(value, dict) else {}


def _parts(body: Json, name: str) -> Iterator[Json]:
    value = body.get(name)
    return (part for part in (value if isinstance(value, list) else ()) if isinstance(part, dict))
