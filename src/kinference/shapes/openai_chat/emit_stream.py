"""Pieces of an answer written as Chat Completions chunks."""

from typing import Final

from kinference.shapes import made_images
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
from kinference.shapes.citations import to_chat as to_chat_annotations
from kinference.shapes.failures import openai_code, openai_type
from kinference.shapes.ir import Json, Reasoning, Sealed
from kinference.shapes.json_text import dumps
from kinference.shapes.logprobs import to_chat
from kinference.shapes.lost import noted
from kinference.shapes.openai_chat.answer import reason_of, signed_block, usage_of
from kinference.shapes.sse import comment, emit

_DONE: Final = emit("", b"[DONE]")


class ChatStreamEmitter:
    """Fed pieces, gives events; `finish` ends the stream well, `fail` does not."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._head = b"{"  # of every chunk, up to its choices
        self._tail = b',"usage":null}\n\n' if frame.wants_usage else b"}\n\n"
        self._counts = Counts()
        self._finish = Finish.STOP
        self._is_tier_told = False
        self._silent: set[int] = set()  # calls without any arguments yet

    def text(self, text: str) -> bytes:
        """The event for one more piece of text."""
        return b'data: %b"choices":[{"index":0,"delta":{"content":%b},"logprobs":null,"finish_reason":null}]%b' % (
            self._head,
            dumps(text),
            self._tail,
        )

    def feed(self, piece: Piece) -> bytes:
        """The event for one piece, b"" where it says nothing now."""
        match piece:
            case TextPiece(logprobs=()):
                return self.text(piece.text)
            case TextPiece():
                choice = self._choice({"content": piece.text}, None) | {"logprobs": to_chat(piece.logprobs)}
                return self._chunk([choice])
            case ArgumentsPiece():
                self._silent.discard(piece.call)
                return self._call(piece.call, {"function": {"arguments": piece.text}})
            case Started():
                return self._start(piece)
            case ReasoningPiece():
                return self._delta({"reasoning_content": piece.text, "reasoning": piece.text})
            case ReasoningEnd() | Sealed():
                return self._signed(piece)
            case RefusalPiece():
                return self._delta({"refusal": piece.text})
            case ToolBegun():
                self._silent.add(piece.call)
                function = {"name": piece.name, "arguments": ""}
                return self._call(piece.call, {"id": piece.id, "type": "function", "function": function})
            case Shown():
                return self._delta({"images": made_images.to_chat([piece.image])})
            case Cited():
                return self._delta({"annotations": to_chat_annotations([piece.citation])})
            case Counted():
                self._counts = self._counts.later(piece.counts)
            case Finished():
                self._finish = piece.finish
            case Failed():
                return self.fail(piece.message, openai_type(piece.status), openai_code(piece.status))
        return b""

    def finish(self) -> bytes:
        """The reason, the usage where it was asked for, and the mark of the end."""
        rest = b"".join(self._call(call, {"function": {"arguments": "{}"}}) for call in sorted(self._silent))
        self._tell_tier()
        rest += self._chunk([self._choice({}, reason_of(self._finish))])
        if self._frame.wants_usage and not self._counts.is_unknown:
            usage = dumps({"choices": [], "usage": usage_of(self._counts)})
            rest += b"data: " + self._head + usage[1:] + b"\n\n"
        return rest + _DONE

    def fail(self, message: str, kind: str = "", code: str | None = None) -> bytes:
        """An error, and neither a reason nor the mark of the end."""
        error = {"message": message, "type": kind or "server_error", "param": None, "code": code}
        return emit("", dumps({"error": error}))

    def note(self, loss: str) -> bytes:
        """Tells what the client does not get."""
        return comment(noted(loss))

    def keep_alive(self) -> bytes:
        """Says that the stream lives."""
        return b": keep-alive\n\n"

    def _start(self, piece: Started) -> bytes:
        self._counts = self._counts.later(piece.counts)
        head: Json = {
            "id": piece.id or f"chatcmpl-{self._frame.id}",
            "object": "chat.completion.chunk",
            "created": self._frame.created,
            "model": piece.model,
        }
        self._head = dumps(head)[:-1] + b","
        self._tell_tier()
        return self._delta({"role": "assistant", "content": ""})

    def _tell_tier(self) -> None:
        """From here on, once it is known."""
        if self._counts.tier is not None and not self._is_tier_told:
            self._is_tier_told = True
            self._head += b'"service_tier":%b,' % dumps(self._counts.tier)

    def _call(self, number: int, members: Json) -> bytes:
        return self._delta({"tool_calls": [{"index": number, **members}]})

    def _signed(self, piece: ReasoningEnd | Sealed) -> bytes:
        """A signature goes with its block's text, which the client has seen already: it keeps only the seal."""
        if isinstance(piece, Sealed):
            return self._delta({"thinking_blocks": [signed_block(piece)]})
        if piece.issuer is None:
            return b""
        signed = signed_block(Reasoning("", piece.signature, piece.issuer))
        return self._delta({"thinking_blocks": [{"type": "thinking", "signature": signed["signature"]}]})

    def _delta(self, delta: Json) -> bytes:
        return self._chunk([self._choice(delta, None)])

    def _choice(self, delta: Json, reason: str | None) -> Json:
        return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}

    def _chunk(self, choices: list[Json]) -> bytes:
        return b'data: %b"choices":%b%b' % (self._head, dumps(choices), self._tail)
