"""Pieces of an answer written as Responses events: each item opened, filled, closed and repeated whole at the end."""

from typing import Final

from kinference.shapes.answers import (
    ArgumentsPiece,
    Cited,
    Counted,
    Counts,
    Failed,
    Finish,
    Finished,
    Frame,
    Piece,
    ReasoningEnd,
    ReasoningPiece,
    RefusalPiece,
    Shown,
    Started,
    TextPiece,
    ToolBegun,
)
from kinference.shapes.ir import Executed, Json, Reasoning, Sealed, Searched, ServerCall, ServerTools, ToolCall
from kinference.shapes.json_text import dumps
from kinference.shapes.lost import noted
from kinference.shapes.openai_responses.answer import cut, ended, envelope, response_id_of, served_by, usage_of
from kinference.shapes.openai_responses.items import (
    CallItem,
    CodeItem,
    ImageItem,
    Item,
    ReasoningItem,
    RefusalItem,
    SearchItem,
    TextItem,
)
from kinference.shapes.openai_responses.mcp_items import ServerCallItem, ServerToolsItem
from kinference.shapes.sequence import Sequencer
from kinference.shapes.sse import comment

_CODES: Final = {400: "invalid_prompt", 429: "rate_limit_exceeded"}
"""Of the few that its clients take, those that say more than that something failed."""


class ResponsesStreamEmitter:
    """Fed pieces, gives events; `finish` ends the stream well, `fail` does not."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._sequencer = Sequencer()
        self._response: Json = {}
        self._output: list[Json] = []
        self._open: Item | None = None
        self._counts = Counts()
        self._finish = Finish.STOP
        self._events = 0
        self._said = 0  # characters of text in items that are done

    def text(self, text: str) -> bytes:
        """The event for one more piece of text."""
        if type(self._open) is not TextItem or not self._sequencer.is_idle:
            return self.feed(TextPiece(text))
        number, self._events = self._events, self._events + 1
        members = b'"sequence_number":%d,"output_index":%d,%b' % (number, len(self._output), self._open.extended(text))
        name = b"response.output_text.delta"
        return b'event: %b\ndata: {"type":"%b",%b}\n\n' % (name, name, members)

    def feed(self, piece: Piece) -> bytes:
        """The events for one piece, b"" where it says nothing now."""
        return b"".join(map(self._written, self._sequencer.feed(piece)))

    def finish(self) -> bytes:
        """The open item's end and the whole response."""
        last = self._close()
        outcome = ended(self._finish)
        whole = self._response | outcome | {"output": self._output, "usage": usage_of(self._counts)}
        whole |= served_by(self._counts)
        return last + self._event(f"response.{outcome['status']}", {"response": whole})

    def fail(self, message: str, kind: str = "", code: str | None = None) -> bytes:  # noqa: ARG002 - it knows few codes
        """A response that failed, with what there is of it."""
        error = {"code": kind or "server_error", "message": message}
        response = self._response or envelope(response_id_of("", self._frame), "", self._frame)
        failed = response | {"status": "failed", "error": error, "output": self._output}
        return self._event("response.failed", {"response": failed})

    def note(self, loss: str) -> bytes:
        """Tells what the client does not get."""
        return comment(noted(loss))

    def keep_alive(self) -> bytes:
        """Says that the stream lives."""
        return b": keep-alive\n\n"

    def _written(self, piece: Piece) -> bytes:
        match piece:
            case TextPiece():
                opened = self._within(TextItem)
                assert isinstance(self._open, TextItem), "just opened"
                return opened + self._events_of(self._open.grown(piece.text, piece.logprobs))
            case RefusalPiece():
                return self._within(RefusalItem) + self._grown(piece.text)
            case ReasoningPiece():
                return self._within(ReasoningItem) + self._grown(piece.text)
            case ArgumentsPiece():
                return self._grown(piece.text)
            case ToolBegun():
                call = ToolCall(
                    *(piece.id, piece.name, "", piece.is_free_form),
                    namespace=piece.namespace,
                    form=piece.form,
                )
                return self._close() + self._opened(CallItem(self._suffix(), call))
            case ReasoningEnd():
                return self._sealed(Reasoning("", piece.signature, piece.issuer))
            case Sealed():
                return self._close() + self._opened(ReasoningItem(self._suffix())) + self._sealed(piece)
            case Shown() | Executed() | Searched() | ServerCall() | ServerTools():
                return self._at_once(piece)
            case Cited() if type(self._open) is TextItem:
                return self._events_of(self._open.cited(piece.citation, self._said))
            case Started():
                return self._start(piece)
            case Counted():
                self._counts = self._counts.later(piece.counts)
            case Finished():
                self._finish = piece.finish
            case Failed():
                return self.fail(piece.message, _CODES.get(piece.status, ""))
        return b""

    def _at_once(self, piece: Shown | Executed | Searched | ServerCall | ServerTools) -> bytes:
        """An item that comes whole; what a search found is told by what the text rests on."""
        if isinstance(piece, Searched) and not piece.queries:
            return b""
        closed, suffix = self._close(), self._suffix()
        return closed + self._opened(_item(suffix, piece)) + self._close()

    def _start(self, piece: Started) -> bytes:
        self._counts = self._counts.later(piece.counts)
        self._response = envelope(response_id_of(piece.id, self._frame), piece.model, self._frame)
        self._response |= served_by(self._counts)
        created = self._event("response.created", {"response": self._response})
        return created + self._event("response.in_progress", {"response": self._response})

    def _suffix(self) -> str:
        return f"{self._response['id'].removeprefix('resp_')}_{len(self._output)}"

    def _within(self, kind: type[TextItem | RefusalItem | ReasoningItem]) -> bytes:
        return b"" if type(self._open) is kind else self._close() + self._opened(kind(self._suffix()))

    def _opened(self, item: Item) -> bytes:
        self._open = item
        return self._events_of(item.begun())

    def _grown(self, text: str) -> bytes:
        return self._events_of(self._open.grown(text)) if self._open is not None else b""

    def _sealed(self, thought: Reasoning | Sealed) -> bytes:
        if isinstance(self._open, ReasoningItem):
            self._open.seal(thought)
        return self._close()

    def _close(self) -> bytes:
        item, self._open = self._open, None
        if item is None:
            return b""
        events, whole = item.done(), item.whole()
        if type(item) is TextItem:
            self._said += item.characters
        if self._finish is Finish.LENGTH:
            whole = cut(whole)
            events[-1] = (events[-1][0], {"item": whole})
        written = self._events_of(events)
        self._output.append(whole)
        return written

    def _events_of(self, events: list[tuple[str, Json]]) -> bytes:
        index = len(self._output)
        return b"".join(self._event(name, {"output_index": index, **members}) for name, members in events)

    def _event(self, name: str, members: Json) -> bytes:
        body = dumps({"type": name, "sequence_number": self._events, **members})
        self._events += 1
        return b"event: %s\ndata: %s\n\n" % (name.encode(), body)


def _item(suffix: str, piece: Shown | Executed | Searched | ServerCall | ServerTools) -> Item:
    match piece:
        case Shown():
            return ImageItem(suffix, piece.image)
        case Executed():
            return CodeItem(suffix, piece)
        case Searched():
            return SearchItem(suffix, piece)
        case ServerCall():
            return ServerCallItem(suffix, piece)
        case ServerTools():
            return ServerToolsItem(suffix, piece)
