"""A stream of Converse events taken apart. Text has no event that begins it."""

from collections.abc import Iterator
from typing import Final

import msgspec

from kinference.shapes.answers import (
    ArgumentsPiece,
    Counted,
    Counts,
    Failed,
    Finished,
    Piece,
    ReasoningEnd,
    ReasoningPiece,
    Started,
    TextPiece,
    ToolBegun,
    cited,
)
from kinference.shapes.bedrock_converse.answer import (
    ISSUER,
    READ,
    SERVERS,
    counts_of,
    failed,
    finish_of,
    inner,
    is_servers,
)
from kinference.shapes.citations import CITATIONS_MAX, of_converse
from kinference.shapes.ir import Json, Sealed, Unread
from kinference.shapes.json_text import loads, plain
from kinference.shapes.openai_chat.answer import key_in, text_in
from kinference.shapes.scan import BadBody
from kinference.shapes.sse import Event

_KINDS: Final = {
    "throttlingException": ("rate_limit_error", 429),
    "serviceUnavailableException": ("overloaded_error", 503),
    "validationException": ("invalid_request_error", 400),
    "internalServerException": ("api_error", 500),
    "modelTimeoutException": ("timeout_error", 504),
}


_NO_COUNTS: Final = Counts()


class _TextDelta(msgspec.Struct, forbid_unknown_fields=True):
    text: str


class _TextEvent(msgspec.Struct):
    delta: _TextDelta
    contentBlockIndex: int = 0  # noqa: N815 - as the API spells it


_TEXT_EVENT: Final = msgspec.json.Decoder(_TextEvent)


class ConverseStreamParser:
    """Fed events, gives pieces. Usage comes after the reason, and is the last."""

    def __init__(self) -> None:
        self._calls: dict[int | None, int] = {}  # by the index of their block
        self._thoughts: dict[int | None, list[str]] = {}  # the signature of each open one
        self._said = 0  # characters of text
        self._begun: dict[int | None, int] = {}  # how many came before each block
        self._cited: dict[int | None, list[Json]] = {}  # what each open block rests on
        self.is_complete = False
        self.is_over = False

    def text_of(self, event: Event) -> str:
        """The text of a delta of text."""
        found = plain(_TEXT_EVENT, event.data) if event.event == "contentBlockDelta" else None
        if found is None or not found.delta.text:
            return ""
        self._begun.setdefault(found.contentBlockIndex, self._said)
        self._said += len(found.delta.text)
        return found.delta.text

    def counts(self) -> Counts:
        """Usage comes with an event of its own."""
        return _NO_COUNTS

    def feed(self, event: Event) -> list[Piece]:
        """What one event means."""
        try:
            body = loads(event.data) if event.data else {}
        except BadBody:
            body = {}
        return list(self._event(event.event, body if isinstance(body, dict) else {}))

    def close(self) -> list[Piece]:
        """The stream has ended; its end is always told."""
        return []

    def _event(self, name: str, body: Json) -> Iterator[Piece]:
        index = key_in(body, "contentBlockIndex")
        match name:
            case "messageStart":
                yield Started()
            case "contentBlockStart" if is_servers(inner(inner(body, "start"), "toolUse")):
                yield Unread(SERVERS)
            case "contentBlockStart" if call := inner(inner(body, "start"), "toolUse"):
                self._calls[index] = len(self._calls)
                yield ToolBegun(self._calls[index], text_in(call, "toolUseId"), text_in(call, "name"))
            case "contentBlockStart":
                yield from (Unread(kind) for kind in inner(body, "start") if kind not in READ)
            case "contentBlockDelta":
                yield from self._delta(index, inner(body, "delta"))
            case "contentBlockStop" if index in self._thoughts:
                signature = "".join(self._thoughts.pop(index))
                yield ReasoningEnd(signature, ISSUER if signature else None)
            case "contentBlockStop" if index in self._cited:
                found, begin = self._cited.pop(index), self._begun.get(index, self._said)
                yield from map(cited, of_converse(found, begin, self._said))
            case "messageStop":
                self.is_complete = True
                yield from failed(body.get("stopReason"))
                yield Finished(finish_of(body.get("stopReason")))
            case "metadata":
                self.is_over = self.is_complete
                yield Counted(counts_of(body))
            case _ if name.lower().endswith("exception"):
                told = text_in(body, "message", "Message") or name
                yield Failed(told, *_KINDS.get(f"{name[:1].lower()}{name[1:]}", ()))

    def _delta(self, index: int | None, delta: Json) -> Iterator[Piece]:
        if text := text_in(delta, "text"):
            self._begun.setdefault(index, self._said)
            self._said += len(text)
            yield TextPiece(text)
        if (citation := inner(delta, "citation")) and len(self._cited.setdefault(index, [])) < CITATIONS_MAX:
            self._cited[index].append(citation)
        if index in self._calls and (text := text_in(inner(delta, "toolUse"), "input")):
            yield ArgumentsPiece(self._calls[index], text)
        thought = inner(delta, "reasoningContent")
        text, signature = text_in(thought, "text"), text_in(thought, "signature")
        if text or signature:
            self._thoughts.setdefault(index, []).append(signature)
        if text:
            yield ReasoningPiece(text)
        if data := text_in(thought, "redactedContent"):
            yield Sealed(data, ISSUER)
        yield from (Unread(kind) for kind in delta if kind not in READ)
