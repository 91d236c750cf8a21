"""Pieces of an answer written as generateContent responses. Calls go out whole, when the answer is over."""

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
from kinference.shapes.citations import Citation
from kinference.shapes.citations import to_gemini as to_gemini_pages
from kinference.shapes.failures import UNKNOWN, gemini_status
from kinference.shapes.gemini.answer import is_cut, part_of, parts_of, reason_of, response, usage_of
from kinference.shapes.ir import Block, Executed, Json, Reasoning, Sealed, ToolCall
from kinference.shapes.json_text import dumps
from kinference.shapes.logprobs import to_gemini
from kinference.shapes.lost import noted

_ANTHROPICS, _OVERLOADED = 529, 503
"""The status of a server that is overloaded: Anthropic has one of its own."""


class GeminiStreamEmitter:
    """Fed pieces, gives events; `finish` ends the stream well, `fail` does not."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._head: Json = {}
        self._tail = b"}\r\n\r\n"  # of every response, from after its candidates
        self._calls: dict[int, tuple[ToolBegun, list[str]]] = {}
        self._counts = Counts()
        self._finish = Finish.STOP
        self._declines = False
        self._notes: list[str] = []
        self._said: list[str] = []
        self._cited: list[Citation] = []

    def text(self, text: str) -> bytes:
        """The event for one more piece of text."""
        self._said.append(text)
        parts = b'[{"text":%b}]' % dumps(text)
        return b'data: {"candidates":[{"content":{"role":"model","parts":%b},"index":0}]%b' % (parts, self._tail)

    def feed(self, piece: Piece) -> bytes:
        """The event for one piece, b"" where it says nothing now."""
        match piece:
            case TextPiece(logprobs=logprobs) if logprobs:
                self._said.append(piece.text)
                body = response([{"text": piece.text}], None)
                body["candidates"][0]["logprobsResult"] = to_gemini(logprobs)
                return self._event(body)
            case TextPiece() | RefusalPiece():
                self._declines = self._declines or isinstance(piece, RefusalPiece)
                return self.text(piece.text)
            case ReasoningEnd() if piece.issuer is not None:
                return self._parts(Reasoning("", piece.signature, piece.issuer))
            case Sealed():
                return self._parts(piece)
            case ReasoningPiece():
                return self._parts(Reasoning(piece.text))
            case ToolBegun():
                self._calls[piece.call] = (piece, [])
            case ArgumentsPiece() if piece.call in self._calls:
                self._calls[piece.call][1].append(piece.text)
            case Started():
                self._counts = self._counts.later(piece.counts)
                self._head = {"modelVersion": piece.model, "responseId": piece.id or self._frame.id}
                self._tail = b"," + dumps(self._head)[1:] + b"\r\n\r\n"
            case Shown():
                return self._parts(piece.image)
            case Executed():
                return self._parts(piece)
            case Cited():
                self._cited.append(piece.citation)
            case Counted():
                self._counts = self._counts.later(piece.counts)
            case Finished():
                self._finish = piece.finish
            case Failed():
                return self._failed(piece.message, piece.status)
        return b""

    def finish(self) -> bytes:
        """The calls, the reason and the usage."""
        calls = (ToolCall(begun.id, begun.name, "".join(texts)) for begun, texts in self._calls.values())
        parts = [part for call in calls if not is_cut(call, self._finish) and (part := part_of(call))]
        last = response(parts or [{"text": ""}], reason_of(self._finish, declines=self._declines))
        if self._notes:
            last["candidates"][0]["finishMessage"] = noted(";".join(self._notes))
        if self._cited:
            last["candidates"][0]["groundingMetadata"] = to_gemini_pages(self._cited, "".join(self._said))
        return self._event(last if self._counts == Counts() else last | {"usageMetadata": usage_of(self._counts)})

    def fail(self, message: str, kind: str = "", code: str | None = None) -> bytes:  # noqa: ARG002 - it has neither
        """An error, after which nothing comes."""
        return self._failed(message, UNKNOWN)

    def _parts(self, block: Block) -> bytes:
        return self._event(response(list(parts_of(block)), None))

    def _failed(self, message: str, code: int) -> bytes:
        code = _OVERLOADED if code == _ANTHROPICS else code
        return self._event({"error": {"code": code, "message": message, "status": gemini_status(code)}})

    def note(self, loss: str) -> bytes:
        """Tells what the client does not get with the reason of the end: there are no comments here."""
        self._notes.append(loss)
        return b""

    def keep_alive(self) -> bytes:
        """Nothing: Google's own clients read every line as data."""
        return b""

    def _event(self, body: Json) -> bytes:
        return b"data: " + dumps(body | self._head) + b"\r\n\r\n"
