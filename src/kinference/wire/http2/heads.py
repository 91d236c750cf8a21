"""What header blocks mean, remembered: callers send the same few, call after call.

A block is decoded, checked and read once. As long as the peer's table stays as it is, the same bytes mean the same
head; a block that changes the table itself, or declares a length of its own, is read each time. Of blocks that differ
in what they end with, such as the id of each request, what comes before is remembered: by its bytes while the table
stays as it is, and by its fields when each block adds to it and so moves the places of all that is in it.
"""

import re
from collections.abc import Callable
from typing import Final, Generic, TypeVar

import msgspec

from kinference.structs import FrozenLeaf
from kinference.wire.http2.fields import REGULAR, Fields
from kinference.wire.http2.frames import ErrorCode, StreamFault
from kinference.wire.http2.headers import HeaderDecoder, list_bytes
from kinference.wire.http2.requests import Request, check_trailers, read_request

Head = TypeVar("Head")

REMEMBERED_MAX: Final = 256
REMEMBERED_BYTES: Final = 1024
"""Blocks, and the longest of them."""
STARTS_MAX: Final = 64
START_BYTES_MAX: Final = 2048
"""What blocks began with, and how large that may be as a list."""


INDEXED_RUN: Final = re.compile(rb"[\x81-\xfe]*")
"""The fields at a block's beginning that are a byte each: places in the tables."""


class _Start(FrozenLeaf, Generic[Head], frozen=True):
    """What a run of indexed fields comes to, as a request of its own, and its size as a list."""

    fields: Fields
    list_bytes: int
    request: Request
    head: Head | None
    """Where heads can be read on."""


class Heads(Generic[Head]):
    """The header blocks of one connection. Broken ones raise ConnectionFault, malformed lists StreamFault.

    `read_on` makes of a head what it would be with more regular fields behind; None where it has to be read anew.
    """

    def __init__(
        self,
        read_head: Callable[[Request], Head],
        list_bytes_max: int,
        read_on: Callable[[Head, Fields], Head | None] | None = None,
    ) -> None:
        self._read_head, self._read_on, self._list_bytes_max = read_head, read_on, list_bytes_max
        self._decoder = HeaderDecoder()
        self.known: dict[bytes, Head] = {}
        """What whole blocks mean that come again, none of which declares the length of its body."""
        self._runs: dict[bytes, _Start[Head]] = {}
        self._valid_at = 0
        """The count of the table's changes up to which both hold."""
        self._starts: dict[Fields, _Start[Head]] = {}

    def request(self, block: bytes) -> tuple[Head, int | None]:
        """The head of a request, and the length of its body where it declares one."""
        head = self.known.get(block)
        if head is not None:
            return head, None
        try:
            head, content_length = self._read(block)
        finally:
            has_changed = self._forget_places()
        if content_length is None and not has_changed and len(block) <= REMEMBERED_BYTES:
            if len(self.known) >= REMEMBERED_MAX:
                self.known.clear()
            self.known[block] = head
        return head, content_length

    def _forget_places(self) -> bool:
        """A block was read. Returns whether it has changed the peer's table, and with it what others mean."""
        changes = self._decoder.changes
        if changes == self._valid_at:
            return False
        self.known.clear()
        self._runs.clear()
        self._valid_at = changes
        return True

    def _read(self, block: bytes) -> tuple[Head, int | None]:
        run = INDEXED_RUN.match(block)
        assert run is not None, "it matches nothing at all too"
        begun, rest = run[0], run.end()
        start = self._runs.get(begun)
        if start is None:
            fields = self._decoder.indexed(begun)
            start = self._starts.get(fields)
            if start is None:
                return self._read_whole(fields, self._decoder.decode(block, rest))
            if len(self._runs) >= STARTS_MAX:
                self._runs.clear()
            self._runs[begun] = start
        return self._go_on(start, self._decoder.decode(block, rest))

    def _go_on(self, start: _Start[Head], rest: Fields) -> tuple[Head, int | None]:
        """A request whose beginning is known."""
        size, is_regular = start.list_bytes, True
        for _, _, role, field_bytes in rest:
            size += field_bytes
            is_regular = is_regular and role is REGULAR
        self._check(size)
        if not is_regular:
            request = read_request(start.fields + rest)
            return self._read_head(request), request.content_length
        one = start.request
        if start.head is not None and self._read_on is not None:
            head = self._read_on(start.head, rest)
            if head is not None:
                return head, one.content_length
        whole = Request(one.method, one.scheme, one.authority, one.path, one.fields + rest, one.content_length)
        return self._read_head(whole), one.content_length

    def _read_whole(self, begun: Fields, rest: Fields) -> tuple[Head, int | None]:
        """A request, and its beginning for the next one that has it, where it goes on with regular fields alone."""
        fields, size = begun + rest, list_bytes(begun)
        self._check(size + list_bytes(rest))
        request = read_request(fields)
        if begun and rest and size <= START_BYTES_MAX and all(role is REGULAR for _, _, role, _ in rest):
            if len(self._starts) >= STARTS_MAX:
                self._starts.clear()
            alone = msgspec.structs.replace(request, fields=request.fields[: -len(rest)])
            head = None if self._read_on is None else self._read_head(alone)
            self._starts[begun] = _Start(begun, size, alone, head)
        return self._read_head(request), request.content_length

    def trailers(self, block: bytes) -> None:
        """Check the fields that end a request."""
        fields = self._decoder.decode(block)
        self._forget_places()
        self._check(list_bytes(fields))
        check_trailers(fields)

    def skip(self, block: bytes) -> None:
        """Keep step with the peer's table over a block that is of no interest."""
        self._decoder.decode(block)
        self._forget_places()

    def _check(self, size: int) -> None:
        if size > self._list_bytes_max:
            raise StreamFault(ErrorCode.ENHANCE_YOUR_CALM, "more header fields than allowed")
