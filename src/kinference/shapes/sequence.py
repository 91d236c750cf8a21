"""Pieces of an answer put one block after another, for APIs that cannot write two blocks at once."""

from collections.abc import Iterator
from typing import Final

from kinference.shapes.answers import (
    ArgumentsPiece,
    Cited,
    CitedWithin,
    Counted,
    Failed,
    Finished,
    Piece,
    Started,
    ToolBegun,
)
from kinference.shapes.json_text import is_complete

LOOKS_MAX: Final = 64
"""How often the arguments of one call are read to see whether they are whole; then only the answer's end tells."""


class Sequencer:
    """Lets the open call's pieces through, and holds back what belongs elsewhere until that call is whole."""

    def __init__(self) -> None:
        self._open: int | None = None
        self._arguments: list[str] = []
        self._is_whole = True
        """As of the last look: looking reads all of the arguments, and is done once for each change at most."""
        self._was_looked_at = True
        self._looks = 0
        self._held: list[Piece] = []

    @property
    def is_idle(self) -> bool:
        """Whether no call is open and nothing is held back, so that whatever comes can be written."""
        return self._open is None and not self._held

    def feed(self, piece: Piece) -> Iterator[Piece]:
        """What can be written now."""
        match piece:
            case Finished():
                yield from self._settle()
                yield piece
            case ArgumentsPiece() if piece.call == self._open:
                self._arguments.append(piece.text)
                self._was_looked_at = not piece.text.rstrip().endswith("}")
                self._is_whole = False
                yield piece
                if self._held and self._may_close():
                    yield from self._replay()
            case Started() | Cited() | CitedWithin() | Counted() | Failed():
                yield piece
            case _ if self._may_close():
                yield from self._admit(piece)
            case _:
                self._held.append(piece)

    def _may_close(self) -> bool:
        if self._open is None:
            return True
        if not self._was_looked_at and self._looks < LOOKS_MAX:
            self._looks += 1
            self._was_looked_at, self._is_whole = True, is_complete("".join(self._arguments))
        return self._is_whole

    def _admit(self, piece: Piece) -> Iterator[Piece]:
        if isinstance(piece, ArgumentsPiece):
            return  # of a call that was whole already
        self._open = None
        if isinstance(piece, ToolBegun):
            self._open, self._arguments = piece.call, []
            self._is_whole, self._was_looked_at, self._looks = False, True, 0
        yield piece

    def _replay(self) -> Iterator[Piece]:
        held, self._held, self._open = self._held, [], None
        for piece in held:
            yield from self.feed(piece)

    def _settle(self) -> Iterator[Piece]:
        """The answer is over: each held block with all that belongs to it."""
        held, self._held, self._open = self._held, [], None
        while held:
            first, *rest = held
            if isinstance(first, ToolBegun):
                own = [piece for piece in rest if isinstance(piece, ArgumentsPiece) and piece.call == first.call]
                held = [piece for piece in rest if piece not in own]
                yield first
                yield from own
            else:
                held = rest
                if not isinstance(first, ArgumentsPiece):
                    yield first
