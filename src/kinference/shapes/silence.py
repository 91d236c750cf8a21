"""Whether a stream says anything before its good end. One that does not, and cost nothing, is no answer."""

from collections.abc import Iterable
from typing import Final

from kinference.shapes.answers import Counted, Counts, Finish, Finished, Piece, Started
from kinference.shapes.sse import Event
from kinference.shapes.translate import DESTINATIONS
from kinference.vocabulary import Api

_FRAMES: Final = (Started, Counted)


class Silence:
    """A stream's, from its beginning for as long as it lasts."""

    def __init__(self, api: Api) -> None:
        destination = DESTINATIONS[api]
        self._reader, self._parser = destination.reader(), destination.stream()
        self._counts = Counts()
        self.is_broken = False
        """Something was said, or the stream ended for a reason of its own."""
        self.is_whole = False
        """The stream ended well and there was nothing in it."""

    def take(self, chunk: bytes) -> None:
        """More of the stream has come. Raises EventTooLong."""
        self._take(self._reader.feed(chunk))

    def end(self) -> None:
        """No more will come."""
        tail = self._reader.tail()
        self._take(() if tail is None else (tail,))
        if self._parser.is_complete:
            self._hear(self._parser.close())
            self._judge()
        self.is_broken = not self.is_whole

    def _take(self, events: Iterable[Event]) -> None:
        for event in events:
            if self.is_broken or self.is_whole:
                return
            self._hear(self._parser.feed(event))
            if self._parser.is_over:
                self._judge()

    def _hear(self, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            if isinstance(piece, _FRAMES):
                self._counts = self._counts.later(piece.counts)
            elif not isinstance(piece, Finished) or piece.finish is not Finish.STOP:
                self.is_broken = True

    def _judge(self) -> None:
        self.is_broken = self.is_broken or bool(self._counts.completion)
        self.is_whole = not self.is_broken
