"""A destination's answer turned into the client's API: whole, and event by event."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from kinference.shapes.answers import (
    Answer,
    ArgumentsPiece,
    Counted,
    Counts,
    Failed,
    Finish,
    Finished,
    Frame,
    NoAnswer,
    Piece,
    ReasoningEnd,
    ReasoningPiece,
    RefusalPiece,
    Shown,
    Started,
    TextPiece,
    ToolBegun,
    cited,
)
from kinference.shapes.choices import Chooser, chosen
from kinference.shapes.dialects import Reader, StreamParser
from kinference.shapes.failures import failure_in, unlisted
from kinference.shapes.gather import gathered
from kinference.shapes.ir import (
    Block,
    Executed,
    Image,
    Reasoning,
    Refusal,
    Sealed,
    Searched,
    ServerCall,
    ServerTools,
    Text,
    ToolCall,
    Unread,
)
from kinference.shapes.json_text import dumps, loads
from kinference.shapes.lost import Lost
from kinference.shapes.scan import BadBody
from kinference.shapes.sse import Event, EventTooLong
from kinference.shapes.tooling import ToolRestorer
from kinference.shapes.translate import CLIENTS, DESTINATIONS, Return, reader_of
from kinference.shapes.unshown import SHOWN, lost, lost_of

_FENCE: Final = re.compile(r"\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*", re.DOTALL)
_CONTENT = (TextPiece, Shown, ReasoningPiece, RefusalPiece, ToolBegun, ArgumentsPiece)


def read_answer(back: Return, body: bytes) -> Answer:
    """A whole answer as the client is to have it. Raises NoAnswer."""
    try:
        fields = unlisted(loads(body))
    except BadBody as error:
        raise NoAnswer(str(error)) from None
    if not isinstance(fields, dict):
        raise NoAnswer("the answer is no JSON object")
    told = fields.get("error")
    if (isinstance(told, dict | str) and told) or fields.get("object") == "error":
        raise NoAnswer(failure_in(fields).message)
    return _restored(back, DESTINATIONS[back.destination].parse_answer(fields))


def gather_answer(back: Return, body: bytes) -> Answer:
    """The same of a stream that came where none was asked for. Raises NoAnswer."""
    parser = DESTINATIONS[back.destination].stream()
    answer = gathered(_pieces_of_stream(parser, reader_of(back), body))
    if not parser.is_complete:
        raise NoAnswer("the destination broke its answer off")
    return _restored(back, answer)


def _pieces_of_stream(parser: StreamParser, reader: Reader, body: bytes) -> Iterator[Piece]:
    try:
        events = reader.feed(body)
    except EventTooLong as error:
        raise NoAnswer(str(error)) from None
    tail = reader.tail()
    for event in events if tail is None else (*events, tail):
        if parser.is_over:
            return
        yield from parser.feed(event)
    if parser.is_complete:
        yield from parser.close()


def _restored(back: Return, answer: Answer) -> Answer:
    """The answer as the client knows its tools and wants its form. Raises NoAnswer where it is none."""
    is_empty = not (answer.blocks or answer.vectors or answer.counts.completion)
    if is_empty and answer.finish is Finish.STOP:
        raise NoAnswer("the answer is empty")
    restorer = ToolRestorer(back.tooling)
    is_changed = restorer.changes or back.is_bare_json or back.is_choice
    if not is_changed and answer.model:
        return answer  # as most are

    def restored(one: Answer) -> Answer:
        blocks = tuple(_bare(restorer.call(block), back) for block in one.blocks)
        return replace(one, blocks=blocks, citations=() if back.is_bare_json or back.is_choice else one.citations)

    others = tuple(map(restored, answer.others))
    return replace(restored(answer), model=answer.model or back.model, others=others)


def losses_of(back: Return, answer: Answer) -> tuple[Lost, ...]:
    """What the client is told of what it does not get."""
    return lost_of(answer, back.client) if back.tells else ()


def write_answer(back: Return, answer: Answer, frame: Frame) -> bytes:
    """The body for a client that wants its answer whole."""
    return dumps(CLIENTS[back.client].emit_answer(answer, frame))


def write_stream(back: Return, answer: Answer, frame: Frame) -> bytes:
    """The whole stream for a client that wants one, of an answer that came whole."""
    emitter = CLIENTS[back.client].stream(frame)
    return b"".join(map(emitter.feed, pieces_of(answer))) + emitter.finish()


def pieces_of(answer: Answer) -> Iterator[Piece]:
    """A whole answer as the pieces of a stream."""
    yield Started(answer.id, answer.model, answer.counts)
    calls = 0
    said = 0
    for block in answer.blocks:
        match block:
            case Text():
                yield TextPiece(block.text, block.logprobs)
                before, said = said, said + len(block.text)
                yield from (cited(citation) for citation in answer.citations if before < citation.end <= said)
            case Image():
                yield Shown(block)
            case Refusal():
                yield RefusalPiece(block.text)
            case Reasoning():
                yield ReasoningPiece(block.text)
                yield ReasoningEnd(block.signature, block.issuer)
            case Sealed() | Executed() | Searched() | ServerCall() | ServerTools() | Unread():
                yield block
            case ToolCall():
                yield ToolBegun(*(calls, block.id, block.name, block.is_free_form), block.namespace, block.form)
                yield ArgumentsPiece(calls, block.arguments)
                calls += 1
    yield Counted(answer.counts)
    yield Finished(answer.finish, answer.stop_sequence)


def _bare(block: Block, back: Return) -> Block:
    if not isinstance(block, Text) or not (back.is_bare_json or back.is_choice):
        return block
    fenced = _FENCE.fullmatch(block.text) if back.is_bare_json else None
    text = block.text if fenced is None else fenced[1]
    if back.is_choice:
        text = chosen(text)
    return block if text == block.text else Text(text)


class StreamTranslation:
    """One stream on its way back."""

    def __init__(self, back: Return, frame: Frame) -> None:
        self._model = back.model
        self._parser = DESTINATIONS[back.destination].stream()
        self._restorer = ToolRestorer(back.tooling)
        self._chooser = Chooser() if back.is_choice else None
        self._emitter = CLIENTS[back.client].stream(frame)
        self._shown = SHOWN[back.client]
        self._lost: set[Lost] | None = set() if back.tells else None
        self._is_started = False
        self.is_ended = False
        """The client has had the last event."""
        self.is_failed = False
        """The destination itself reported an error."""
        self._counts = Counts()
        self.content_pieces = 0
        """How many pieces carried content: an estimate of the tokens when no usage comes."""

    def feed(self, event: Event) -> bytes:
        """What one event is to the client."""
        if self.is_ended:
            return b""
        if self._is_started and self._chooser is None and (text := self._parser.text_of(event)):
            self.content_pieces += 1
            return self._emitter.text(text)
        written = self._write(self._parser.feed(event))
        return written + self._end() if self._parser.is_over and not self.is_ended else written

    def close(self) -> bytes:
        """The destination ended its stream: the rest, where it ended well."""
        if self.is_ended or not self._parser.is_complete:
            return b""
        written = self._write(self._parser.close())
        return written + self._end()

    @property
    def counts(self) -> Counts:
        """Usage so far."""
        return self._counts.later(self._parser.counts())

    @property
    def is_whole(self) -> bool:
        """Nothing more is owed to the client but what `close` gives."""
        return self.is_ended or self._parser.is_complete

    def fail(self, message: str, code: str) -> bytes:
        """The stream broke off."""
        self.is_ended = True
        return self._emitter.fail(message, code=code)

    def keep_alive(self) -> bytes:
        """Says that the stream lives."""
        return b"" if self.is_ended else self._emitter.keep_alive()

    def _write(self, pieces: Iterable[Piece]) -> bytes:
        restored = self._restorer.pieces(pieces)
        return b"".join(map(self._piece, restored if self._chooser is None else self._chooser.pieces(restored)))

    def _piece(self, piece: Piece) -> bytes:
        if isinstance(piece, Failed):
            self.is_ended = self.is_failed = True
            return self._emitter.feed(piece)
        begun = b""
        if isinstance(piece, Started):
            if self._is_started:
                return b""
            piece = replace(piece, model=piece.model or self._model)
            self._counts = self._counts.later(piece.counts)
        elif not self._is_started:
            begun = self._emitter.feed(Started(model=self._model))
        self._is_started = True
        if isinstance(piece, Counted):
            self._counts = self._counts.later(piece.counts)
        elif isinstance(piece, _CONTENT):
            self.content_pieces += 1
        if type(piece) not in self._shown:
            return begun + self._noted(lost(piece))
        return begun + self._emitter.feed(piece)

    def _noted(self, loss: Lost) -> bytes:
        """What the client does not get, told once."""
        if self._lost is None or loss in self._lost:
            return b""
        self._lost.add(loss)
        return self._emitter.note(str(loss))

    def _end(self) -> bytes:
        """A good end, and a beginning before it where nothing came between."""
        self.is_ended = True
        begun = b"" if self._is_started else self._emitter.feed(Started(model=self._model))
        return begun + self._emitter.finish()
