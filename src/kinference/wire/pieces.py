"""A body in pieces: large chunks are kept as they came, small ones are run together."""

from collections.abc import Sequence
from typing import Final

COALESCE_BELOW: Final = 16 * 1024
"""A chunk smaller than this is copied into the tail; a larger one is worth an object of its own."""

TAIL_BYTES: Final = 64 * 1024
"""The tail becomes a piece once it is this long."""


class Pieces:
    """An append-only body whose memory is proportional to its bytes, however finely it was cut.

    No piece is longer than `piece_max`, and no three in a row are shorter than COALESCE_BELOW.
    """

    __slots__ = ("_piece_max", "_pieces", "_tail", "size")

    def __init__(self, piece_max: int) -> None:
        self._piece_max = piece_max
        self._pieces: list[bytes] | None = None  # most bodies are a tail, and very many may be held
        self._tail: bytes | bytearray = b""
        self.size = 0

    def append(self, chunk: bytes) -> None:
        self.size += len(chunk)
        if len(chunk) < COALESCE_BELOW:
            if not self._tail:
                self._tail = chunk  # and often all there is, which then is not copied
                return
            if isinstance(self._tail, bytes):
                self._tail = bytearray(self._tail)
            self._tail += chunk
            if len(self._tail) >= TAIL_BYTES:
                self._flush()
            return
        self._flush()
        self._extend(chunk)

    def pieces(self) -> tuple[bytes, ...]:
        """The body so far, in order; no piece is empty."""
        tail = self._tail
        if self._pieces is None and isinstance(tail, bytes) and 0 < len(tail) <= self._piece_max:  # a body of one chunk
            return (tail,)
        self._flush()
        return tuple(self._pieces or ())

    def _flush(self) -> None:
        if self._tail:
            self._extend(bytes(self._tail))
            self._tail = b""

    def _extend(self, chunk: bytes) -> None:
        if self._pieces is None:
            self._pieces = []
        self._pieces.extend(cut(chunk, self._piece_max))


def cut(body: bytes, piece_max: int) -> Sequence[bytes]:
    """The body in pieces of at most `piece_max` bytes; a body that fits is passed on as it is."""
    if len(body) <= piece_max:
        return (body,) if body else ()
    return [body[start : start + piece_max] for start in range(0, len(body), piece_max)]


def join(pieces: tuple[bytes, ...]) -> bytes:
    """The body as one buffer; one piece is passed on without a copy."""
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
