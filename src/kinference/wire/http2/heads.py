"""What header blocks mean, remembered: callers send the same few, call after call.

A block is decoded, checked and read once. As long as the peer's table stays as it is, the same bytes mean the same
head; a block that changes the table itself, or declares a length of its own, is read each time. Of blocks that differ
in what they end with, such as the id of each request, what comes before is remembered.
"""

import re
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from kinference.wire.http2.fields import REGULAR, Fields
from kinference.wire.http2.frames import ErrorCode, StreamFault
from kinference.wire.http2.headers import HeaderDecoder, list_bytes
from kinference.wire.http2.requests import Request, check_trailers, read_request

Head = TypeVar("Head")

REMEMBERED_MAX, REMEMBERED_BYTES = 256, 1024
"""Blocks, and the longest of them."""


INDEXED_RUN = re.compile(rb"[\x81-\xfe]*")
"""The fields at a block's beginning that are a byte each: places in the tables."""


class _Start(msgspec.Struct, frozen=True, gc=False):
    """What a run of indexed fields comes to, as a request of its own, and its size as a list."""

    fields: Fields
    list_bytes: int
    request: Request


class Heads(Generic[Head]):
    """The header blocks of one connection. Broken ones raise ConnectionFault, malformed lists StreamFault."""

    def __init__(self, read_head: Callable[[Request], Head], list_bytes_max: int) -> None:
        self._read_head, self._list_bytes_max = read_head, list_bytes_max
        self._decoder = HeaderDecoder()
        self._known: dict[bytes, Head] = {}
        self._starts: dict[bytes, _Start] = {}
        self._valid_at = 0
        """The count of the table's changes up to which both hold."""

    def request(self, block: bytes) -> tuple[Head, int | None]:
        """The head of a request, and the length of its body where it declares one."""
        if self._decoder.changes != self._valid_at:
            self._known.clear()
            self._starts.clear()
            self._valid_at = self._decoder.changes
        head = self._known.get(block)
        if head is not None:
            return head, None
        request = self._request(block)
        head = self._read_head(request)
        is_lasting = request.content_length is None and self._decoder.changes == self._valid_at
        if is_lasting and len(block) <= REMEMBERED_BYTES:
            if len(self._known) >= REMEMBERED_MAX:
                self._known.clear()
            self._known[block] = head
        return head, request.content_length

    def _request(self, block: bytes) -> Request:
        run = INDEXED_RUN.match(block)
        assert run is not None, "it matches nothing at all too"
        begun = run[0]
        start = self._starts.get(begun)
        if start is None:
            fields = self._fields(block)
            request = read_request(fields)
            self._remember(begun, fields, request)
            return request
        rest = self._decoder.decode(block[len(begun) :], goes_on=True)
        self._check(start.list_bytes + list_bytes(rest))
        if not _are_regular(rest):
            return read_request(start.fields + rest)
        one = start.request
        return Request(one.method, one.scheme, one.authority, one.path, one.fields + rest, one.content_length)

    def _remember(self, begun: bytes, fields: Fields, request: Request) -> None:
        """What a block began with, where it went on with regular fields alone and changed no table."""
        count = len(fields) - len(begun)
        if not count or self._decoder.changes != self._valid_at or not _are_regular(fields[-count:]):
            return
        if len(self._starts) >= REMEMBERED_MAX:
            self._starts.clear()
        alone = msgspec.structs.replace(request, fields=request.fields[:-count])
        self._starts[begun] = _Start(fields[:-count], list_bytes(fields[:-count]), alone)

    def trailers(self, block: bytes) -> None:
        """Check the fields that end a request."""
        check_trailers(self._fields(block))

    def skip(self, block: bytes) -> None:
        """Keep step with the peer's table over a block that is of no interest."""
        self._decoder.decode(block)

    def _fields(self, block: bytes) -> Fields:
        fields = self._decoder.decode(block)
        self._check(list_bytes(fields))
        return fields

    def _check(self, size: int) -> None:
        if size > self._list_bytes_max:
            raise StreamFault(ErrorCode.ENHANCE_YOUR_CALM, "more header fields than allowed")


def _are_regular(fields: Fields) -> bool:
    return all([role is REGULAR for _, _, role, _ in fields])  # noqa: C419 - hot
