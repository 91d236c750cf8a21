"""Answers written as Completions: text alone, whole and in chunks."""

from kinference.shapes.answers import (
    Answer,
    Counted,
    Counts,
    Failed,
    Finish,
    Finished,
    Frame,
    Piece,
    RefusalPiece,
    Started,
    TextPiece,
)
from kinference.shapes.ir import Json, Refusal, Text
from kinference.shapes.json_text import dumps
from kinference.shapes.logprobs import to_completions
from kinference.shapes.lost import noted
from kinference.shapes.openai_chat.answer import logprobs_of, usage_of
from kinference.shapes.openai_chat.emit_stream import ChatStreamEmitter
from kinference.shapes.sse import comment, emit

_REASONS = {Finish.LENGTH: "length", Finish.REFUSAL: "content_filter"}


def emit_answer(answer: Answer, frame: Frame) -> Json:
    """The body."""
    choices = [_written_choice(one, at) for at, one in enumerate((answer, *answer.others))]
    head = _head(answer.id, answer.model, frame)
    usage = {} if answer.counts.is_unknown else {"usage": usage_of(answer.counts)}
    return {**head, "choices": choices, **usage}


def _written_choice(answer: Answer, index: int) -> Json:
    text = "".join(block.text for block in answer.blocks if isinstance(block, Text | Refusal))
    written = _choice(text, _REASONS.get(answer.finish, "stop"))
    return written | {"index": index, "logprobs": to_completions(logprobs_of(answer.blocks))}


def _head(upstream: str, model: str, frame: Frame) -> Json:
    answer_id = f"cmpl-{upstream or frame.id}"
    return {"id": answer_id, "object": "text_completion", "created": frame.created, "model": model}


def _choice(text: str, reason: str | None) -> Json:
    return {"index": 0, "text": text, "logprobs": None, "finish_reason": reason}


class CompletionStreamEmitter:
    """Fed pieces, gives events; `finish` ends the stream well, `fail` does not."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._errors = ChatStreamEmitter(frame)
        self._head = b""  # of every chunk, up to its choices
        self._tail = b',"usage":null}\n\n' if frame.wants_usage else b"}\n\n"
        self._length = 0  # of the text so far, in characters
        self._counts = Counts()
        self._finish = Finish.STOP

    def text(self, text: str) -> bytes:
        """The event for one more piece of text."""
        choice = b'{"index":0,"text":%b,"logprobs":null,"finish_reason":null}' % dumps(text)
        return b'data: %b"choices":[%b]%b' % (self._head, choice, self._tail)

    def feed(self, piece: Piece) -> bytes:
        """The event for one piece, b"" where it says nothing now."""
        match piece:
            case TextPiece(logprobs=logprobs) if logprobs:
                offset, self._length = self._length, self._length + len(piece.text)
                choice = _choice(piece.text, None) | {"logprobs": to_completions(logprobs, offset)}
                return b'data: %b"choices":[%b]%b' % (self._head, dumps(choice), self._tail)
            case TextPiece() | RefusalPiece():
                return self.text(piece.text)
            case Started():
                self._counts = self._counts.later(piece.counts)
                self._head = dumps(_head(piece.id, piece.model, self._frame))[:-1] + b","
            case Counted():
                self._counts = self._counts.later(piece.counts)
            case Finished():
                self._finish = piece.finish
            case Failed():
                return self._errors.feed(piece)
        return b""

    def finish(self) -> bytes:
        """The reason, the usage where it was asked for, and the mark of the end."""
        choice = dumps(_choice("", _REASONS.get(self._finish, "stop")))
        last = b'data: %b"choices":[%b]%b' % (self._head, choice, self._tail)
        usage = b""
        if self._frame.wants_usage and not self._counts.is_unknown:
            usage = b'data: %b"choices":[],"usage":%b}\n\n' % (self._head, dumps(usage_of(self._counts)))
        return last + usage + emit("", b"[DONE]")

    def fail(self, message: str, kind: str = "", code: str | None = None) -> bytes:
        """An error, and neither a reason nor the mark of the end."""
        return self._errors.fail(message, kind, code)

    def note(self, loss: str) -> bytes:
        """Tells what the client does not get."""
        return comment(noted(loss))

    def keep_alive(self) -> bytes:
        """Says that the stream lives."""
        return self._errors.keep_alive()
