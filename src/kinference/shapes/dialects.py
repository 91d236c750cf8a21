"""What each API brings to translation: as the client's it reads requests and writes answers, as the destination's it
writes requests and reads answers.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from kinference.shapes.answers import Answer, Counts, Frame, Piece
from kinference.shapes.concepts import Fields
from kinference.shapes.ir import Json, Request
from kinference.shapes.sse import Event, SseReader


class Reader(Protocol):
    """The bytes of a stream, cut into events."""

    def feed(self, chunk: bytes) -> list[Event]:
        """Every event that this chunk completes."""
        ...

    def tail(self) -> Event | None:
        """What is left when the stream has ended."""
        ...


class StreamParser(Protocol):
    """A destination's stream, taken apart."""

    is_complete: bool
    """A sign of a good end was seen."""
    is_over: bool
    """The last event was seen: nothing that follows counts."""

    def text_of(self, event: Event) -> str:
        """The text of an event that is nothing but more text, as nearly all are; "" of any other."""
        ...

    def feed(self, event: Event) -> list[Piece]:
        """What one event means; one that cannot be read means nothing."""
        ...

    def close(self) -> list[Piece]:
        """The stream has ended: what its end means."""
        ...

    def counts(self) -> Counts:
        """Usage that came along with text, and has been in no piece yet."""
        ...


class StreamEmitter(Protocol):
    """The client's stream, put together."""

    def text(self, text: str) -> bytes:
        """The same as to `feed` a piece of text, sooner."""
        ...

    def feed(self, piece: Piece) -> bytes:
        """What one piece is, b"" where it is nothing now."""
        ...

    def finish(self) -> bytes:
        """A good end."""
        ...

    def fail(self, message: str, kind: str = "", code: str | None = None) -> bytes:
        """An error, and none of the signs of a good end."""
        ...

    def note(self, loss: str) -> bytes:
        """Tells what the client does not get, where those that do not ask for it pass it over."""
        ...

    def keep_alive(self) -> bytes:
        """Says that the stream lives; b"" where the API has no way to say it."""
        ...


class Client(NamedTuple):
    """An API that clients speak."""

    fields: Fields
    parse_request: Callable[[Json], Request]
    emit_answer: Callable[[Answer, Frame], Json]
    stream: Callable[[Frame], StreamEmitter]
    echoed: tuple[str, ...] = ()
    """Fields of the request that its answers repeat."""


class Destination(NamedTuple):
    """An API that destinations speak."""

    emit_request: Callable[[Request], Json]
    parse_answer: Callable[[Json], Answer]
    stream: Callable[[], StreamParser]
    reader: Callable[[], Reader] = SseReader
