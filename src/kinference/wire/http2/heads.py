"""What header blocks mean, remembered: callers send the same few, call after call.

A block is decoded, checked and read once. As long as the peer's table stays as it is, the same bytes mean the same
head; a block that changes the table itself, or declares a length of its own, is read each time.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from kinference.wire.http2.fields import Fields
from kinference.wire.http2.frames import ErrorCode, StreamFault
from kinference.wire.http2.headers import HeaderDecoder, list_bytes
from kinference.wire.http2.requests import Request, check_trailers, read_request

Head = TypeVar("Head")

REMEMBERED_MAX, REMEMBERED_BYTES = 256, 1024
"""Blocks, and the longest of them."""


class Heads(Generic[Head]):
    """The header blocks of one connection. Broken ones raise ConnectionFault, malformed lists StreamFault."""

    def __init__(self, read_head: Callable[[Request], Head], list_bytes_max: int) -> None:
        self._read_head, self._list_bytes_max = read_head, list_bytes_max
        self._decoder = HeaderDecoder()
        self._known: dict[bytes, Head] = {}
        self._valid_at = 0
        """The count of the table's changes up to which `_known` holds."""

    def request(self, block: bytes) -> tuple[Head, int | None]:
        """The head of a request, and the length of its body where it declares one."""
        if self._decoder.changes != self._valid_at:
            self._known.clear()
            self._valid_at = self._decoder.changes
        head = self._known.get(block)
        if head is not None:
            return head, None
        request = read_request(self._fields(block))
        head = self._read_head(request)
        is_lasting = request.content_length is None and self._decoder.changes == self._valid_at
        if is_lasting and len(block) <= REMEMBERED_BYTES:
            if len(self._known) >= REMEMBERED_MAX:
                self._known.clear()
            self._known[block] = head
        return head, request.content_length

    def trailers(self, block: bytes) -> None:
        """Check the fields that end a request."""
        check_trailers(self._fields(block))

    def skip(self, block: bytes) -> None:
        """Keep step with the peer's table over a block that is of no interest."""
        self._decoder.decode(block)

    def _fields(self, block: bytes) -> Fields:
        fields = self._decoder.decode(block)
        if list_bytes(fields) > self._list_bytes_max:
            raise StreamFault(ErrorCode.ENHANCE_YOUR_CALM, "more header fields than allowed")
        return fields
