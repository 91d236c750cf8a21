"""Pieces of an answer written as Messages events."""

from typing import Final

from kinference.shapes import code_execution, mcp_calls
from kinference.shapes.answers import (
    ArgumentsPiece,
    Cited,
    CitedWithin,
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
    Started,
    TextPiece,
    ToolBegun,
)
from kinference.shapes.anthropic_messages.answer import message_id, reason_of, served_by, usage_of
from kinference.shapes.citations import to_messages
from kinference.shapes.failures import messages_type
from kinference.shapes.ir import Executed, Json, Reasoning, Sealed, ServerCall
from kinference.shapes.json_text import dumps
from kinference.shapes.lost import noted
from kinference.shapes.seals import own_or_sealed
from kinference.shapes.sequence import Sequencer
from kinference.shapes.sse import comment
from kinference.vocabulary import Api

_EMPTY: Final = {
    "text": {"type": "text", "text": ""},
    "thinking": {"type": "thinking", "thinking": "", "signature": ""},
}


class MessagesStreamEmitter:
    """Fed pieces, gives events; `finish` ends the stream well, `fail` does not."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._sequencer = Sequencer()
        self._counts = Counts()
        self._end = Finished(Finish.STOP)
        self._kind = ""  # of the open block; "" when none is
        self._blocks = 0
        self._declines = False
        self._answer_id = ""

    def text(self, text: str) -> bytes:
        """The event for one more piece of text."""
        if self._kind != "text" or not self._sequencer.is_idle:
            return self.feed(TextPiece(text))
        delta = b'"index":%d,"delta":{"type":"text_delta","text":%b}' % (self._blocks - 1, dumps(text))
        return b'event: content_block_delta\ndata: {"type":"content_block_delta",%b}\n\n' % delta

    def feed(self, piece: Piece) -> bytes:
        """The events for one piece, b"" where it says nothing now."""
        return b"".join(map(self._written, self._sequencer.feed(piece)))

    def finish(self) -> bytes:
        """The open block's end, the reason, the usage and the end."""
        last = b"" if self._blocks else self._open("text", _EMPTY["text"])  # clients look at the first block
        reason = reason_of(self._end.finish, declines=self._declines)
        delta = {"stop_reason": reason, "stop_sequence": self._end.stop_sequence or None}
        last += self._close()
        last += _event("message_delta", {"delta": delta, "usage": usage_of(self._counts)})
        return last + _event("message_stop", {})

    def fail(self, message: str, kind: str = "", code: str | None = None) -> bytes:  # noqa: ARG002 - it has no codes
        """An error, after which nothing comes."""
        return _event("error", {"error": {"type": kind or "api_error", "message": message}})

    def note(self, loss: str) -> bytes:
        """Tells what the client does not get."""
        return comment(noted(loss))

    def keep_alive(self) -> bytes:
        """Says that the stream lives."""
        return _event("ping", {})

    def _written(self, piece: Piece) -> bytes:
        match piece:
            case TextPiece() | RefusalPiece():
                self._declines = self._declines or isinstance(piece, RefusalPiece)
                return self._within("text") + self._delta({"type": "text_delta", "text": piece.text})
            case ArgumentsPiece():
                return self._delta({"type": "input_json_delta", "partial_json": piece.text})
            case ReasoningPiece():
                return self._within("thinking") + self._delta({"type": "thinking_delta", "thinking": piece.text})
            case ToolBegun():
                block = {"type": "tool_use", "id": piece.id, "name": piece.name, "input": {}}
                return self._close() + self._open("tool_use", block)
            case ReasoningEnd():
                return self._signed(piece)
            case Sealed():
                block = {"type": "redacted_thinking", "data": own_or_sealed(piece, Api.ANTHROPIC_MESSAGES)}
                return self._close() + self._open("redacted_thinking", block) + self._close()
            case Executed() | ServerCall():
                return self._close() + self._ran(piece)
            case Cited() | CitedWithin() if self._kind == "text":
                return self._delta({"type": "citations_delta", "citation": to_messages(piece.citation)})
            case Started():
                return self._start(piece)
            case Counted():
                self._counts = self._counts.later(piece.counts)
            case Finished():
                self._end = piece
            case Failed():
                return self.fail(piece.message, messages_type(piece.status))
        return b""

    def _start(self, piece: Started) -> bytes:
        self._counts = self._counts.later(piece.counts)
        self._answer_id = message_id(piece.id, self._frame)
        message: Json = {
            "id": self._answer_id,
            "type": "message",
            "role": "assistant",
            "model": piece.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage_of(self._counts) | served_by(self._counts),
        }
        return _event("message_start", {"message": message})

    def _ran(self, ran: Executed | ServerCall) -> bytes:
        place = f"{self._answer_id}_{self._blocks}"
        if isinstance(ran, ServerCall):
            call, result = mcp_calls.to_messages(ran, place)
        else:
            call, result = code_execution.to_messages(ran, place)
        given = dumps(call["input"]).decode()
        written = self._open(call["type"], call | {"input": {}})
        written += self._delta({"type": "input_json_delta", "partial_json": given}) + self._close()
        return written + self._open(result["type"], result) + self._close()

    def _signed(self, piece: ReasoningEnd) -> bytes:
        """A signature for the client to send back to its issuer."""
        signature = b""
        if self._kind == "thinking" and piece.issuer is not None:
            thought = Reasoning("", piece.signature, piece.issuer)
            text = own_or_sealed(thought, Api.ANTHROPIC_MESSAGES)
            signature = self._delta({"type": "signature_delta", "signature": text})
        return signature + self._close()

    def _within(self, kind: str) -> bytes:
        return b"" if self._kind == kind else self._close() + self._open(kind, _EMPTY[kind])

    def _open(self, kind: str, block: Json) -> bytes:
        self._kind = kind
        self._blocks += 1
        return _event("content_block_start", {"index": self._blocks - 1, "content_block": block})

    def _close(self) -> bytes:
        if not self._kind:
            return b""
        self._kind = ""
        return _event("content_block_stop", {"index": self._blocks - 1})

    def _delta(self, delta: Json) -> bytes:
        return _event("content_block_delta", {"index": self._blocks - 1, "delta": delta})


def _event(name: str, members: Json) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), dumps({"type": name, **members}))
