"""The pieces of a streamed answer gathered into a whole one, for a client that did not ask for a stream."""

from collections.abc import Iterable

from msgspec.structs import replace

from kinference.shapes.answers import (
    Answer,
    ArgumentsPiece,
    Cited,
    CitedWithin,
    Counted,
    Counts,
    Failed,
    Finish,
    Finished,
    NoAnswer,
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
from kinference.shapes.ir import Block, Json, Reasoning, Refusal, Text, ToolCall
from kinference.vocabulary import Api


def gathered(pieces: Iterable[Piece]) -> Answer:
    """The whole answer. Raises NoAnswer with what the destination said, where it gave up."""
    answer = _Gathering()
    for piece in pieces:
        answer.take(piece)
    return answer.whole()


class _Run:
    """A block that grows."""

    def __init__(self, kind: type[Piece]) -> None:
        self.kind = kind
        self.texts: list[str] = []
        self.logprobs: list[Json] = []
        self.signature, self.issuer = "", None

    signature: str
    issuer: Api | None

    def block(self) -> Block:
        text = "".join(self.texts)
        if self.kind is ReasoningPiece:
            return Reasoning(text, self.signature, self.issuer)
        return Refusal(text) if self.kind is RefusalPiece else Text(text, logprobs=tuple(self.logprobs))


class _Call:
    """A call whose arguments are still coming."""

    def __init__(self, begun: ToolBegun) -> None:
        self._begun = begun
        self.texts: list[str] = []

    def block(self) -> Block:
        begun = self._begun
        return ToolCall(
            *(begun.id, begun.name, "".join(self.texts), begun.is_free_form),
            namespace=begun.namespace,
            form=begun.form,
        )


class _Gathering:
    def __init__(self) -> None:
        self._blocks: list[Block | _Run | _Call] = []
        self._calls: dict[int, _Call] = {}
        self._open: _Run | None = None
        self._citations: list[Citation] = []
        self._counts, self._finished = Counts(), Finished(Finish.STOP)
        self._started = Started()

    def take(self, piece: Piece) -> None:
        match piece:
            case TextPiece():
                run = self._run(TextPiece)
                run.texts.append(piece.text)
                run.logprobs += piece.logprobs
            case RefusalPiece() | ReasoningPiece():
                self._run(type(piece)).texts.append(piece.text)
            case ReasoningEnd():
                run = self._run(ReasoningPiece)
                run.signature, run.issuer, self._open = piece.signature, piece.issuer, None
            case ToolBegun():
                self._open, call = None, _Call(piece)
                self._calls[piece.call] = call
                self._blocks.append(call)
            case ArgumentsPiece():
                if piece.call in self._calls:
                    self._calls[piece.call].texts.append(piece.text)
            case Cited() | CitedWithin():
                self._citations.append(piece.citation)
            case Started():
                self._started, self._counts = piece, self._counts.later(piece.counts)
            case Counted():
                self._counts = self._counts.later(piece.counts)
            case Finished():
                self._finished = piece
            case Failed():
                raise NoAnswer(piece.message or "the destination gave up within its answer")
            case Shown():
                self._add(piece.image)
            case _:
                self._add(piece)

    def _run(self, kind: type[Piece]) -> _Run:
        """The block of this kind that is open, or a new one."""
        if self._open is None or self._open.kind is not kind:
            self._open = _Run(kind)
            self._blocks.append(self._open)
        return self._open

    def _add(self, block: Block) -> None:
        self._open = None
        self._blocks.append(block)

    def whole(self) -> Answer:
        blocks = [one.block() if isinstance(one, _Run | _Call) else one for one in self._blocks]
        answer = Answer(self._started.id, self._started.model, tuple(blocks))
        return replace(
            answer,
            finish=self._finished.finish,
            stop_sequence=self._finished.stop_sequence,
            counts=self._counts,
            citations=tuple(self._citations),
        )
