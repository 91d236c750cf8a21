"""Bytes of a peer into frames, and the order in which they have to come (RFC 9113, sections 3.4, 4 and 6.10).

A header block is told of whole: HEADERS and the CONTINUATION frames behind it are one thing to who acts on them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from kinference.ids import Seconds
from kinference.wire.http2 import frames
from kinference.wire.http2.frames import (
    END_HEADERS,
    END_STREAM,
    HEADER_BYTES,
    PADDED,
    PRIORITY_FIELDS,
    STREAM_ID_MAX,
    ConnectionFault,
    ErrorCode,
    FrameType,
    StreamFault,
)
from kinference.wire.http2.guard import Guard, Http2Limits, Nuisance

KIND_AT: Final = 3
"""Where a frame says what it is."""
DATA: Final = int(FrameType.DATA)
HEADERS: Final = int(FrameType.HEADERS)
"""By names of their own: reaching the member of an enumeration costs ten times as much."""
_UNPACK: Final = frames.HEADER.unpack_from
OnFrame: TypeAlias = Callable[[int, int, bytes], None]
"""Takes flags, the stream and the payload."""
OnBlock: TypeAlias = Callable[[int, bytes, bool], None]
"""Takes the stream, the block, and whether the stream ends with it."""
OnRequest: TypeAlias = Callable[[bytes, int], int]
"""Takes the buffer, and where HEADERS stand in it that are a whole block; tells how far it has read, which may be
nothing."""
OnFault: TypeAlias = Callable[[int, ErrorCode], None]


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Who is told of what is more than a frame."""

    block: OnBlock
    request: OnRequest
    fault: OnFault


@dataclass(slots=True)
class _Block:
    """A header block that goes on in CONTINUATION frames."""

    stream_id: int
    ended: bool
    pieces: list[bytes]
    size: int


class FrameReader:
    """The frames of one connection. What a frame means is for the callbacks, which may raise either fault."""

    def __init__(
        self,
        limits: Http2Limits,
        guard: Guard,
        on_frame: Mapping[FrameType, OnFrame],
        on: Callbacks,
    ) -> None:
        self._limits, self._guard = limits, guard
        self._on_block, self._on_request, self._on_fault = on.block, on.request, on.fault
        self._mark_max = limits.frame_bytes_max << 8 | 0xFF
        own = {FrameType.HEADERS: self._on_headers, FrameType.CONTINUATION: self._on_continuation}
        by_type = {**on_frame, **own}
        self._readers: tuple[OnFrame, ...] = tuple(by_type[kind] for kind in sorted(FrameType))
        self._now = 0.0
        self._block: _Block | None = None
        self._pieces: list[bytes] = []
        self._held = 0
        self._wanted = len(frames.PREFACE)
        self._is_greeted = False
        self.is_settled = False
        """Whether the peer's first SETTINGS have come."""

    def feed(self, data: bytes, now: Seconds) -> None:
        """Bytes from the peer, cut anywhere. Raises ConnectionFault, after which nothing more is to be fed."""
        self._now = now
        self._pieces.append(data)
        self._held += len(data)
        if self._held >= self._wanted:
            rest = self._read(data, 0) if len(self._pieces) == 1 else self._go_on(data)
            self._pieces.clear()
            if rest:
                self._pieces.append(rest)
            self._held = len(rest)

    def _go_on(self, data: bytes) -> bytes:
        """Read what was cut, and what has come behind it. Only DATA is joined alone, which may be nearly all there is:
        what begins with other frames may be a request that is whole now.
        """
        pieces = self._pieces
        begin = pieces[0]
        if self._wanted == HEADER_BYTES or not self._is_greeted or len(begin) <= KIND_AT or begin[KIND_AT] != DATA:
            return self._read(b"".join(pieces), 0)
        missing = self._wanted - self._held + len(data)
        pieces[-1] = data[:missing]
        self._read(b"".join(pieces), 0)
        return self._read(data, missing)

    def _read(self, buffer: bytes, at: int) -> bytes:
        """Read all frames from there on that are whole. Returns what is left."""
        end = len(buffer)
        if not self._is_greeted:
            at = self._check_preface(buffer)
        mark_max, readers = self._mark_max, self._readers
        self._wanted = HEADER_BYTES
        while end - at >= HEADER_BYTES:
            length_and_kind, flags, stream_id = _UNPACK(buffer, at)
            start = at + HEADER_BYTES
            stop = start + (length_and_kind >> 8)
            if length_and_kind > mark_max:
                raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, f"a frame of {length_and_kind >> 8} bytes")
            if stop > end:
                self._wanted = stop - at
                break
            kind, stream_id = length_and_kind & 0xFF, stream_id & STREAM_ID_MAX
            if self._block is not None or not self.is_settled:
                self._check_turn(kind, flags, stream_id)
            try:
                if kind == HEADERS and flags == END_HEADERS:
                    after = self._on_request(buffer, at)
                    if after > at:
                        at = after
                        continue
                reader = readers[kind] if kind < len(readers) else self._on_unknown
                reader(flags, stream_id, buffer[start:stop])
            except StreamFault as fault:
                self.blame(stream_id, fault)
            at = stop
        return buffer[at:]

    def blame(self, stream_id: int, fault: StreamFault) -> None:
        """The peer broke a rule that ends a stream."""
        self._guard.charge(Nuisance.FAULT, self._now)
        self._limits.tally.resets[fault.code.name.lower()] += 1
        self._on_fault(stream_id, fault.code)

    def _check_preface(self, buffer: bytes) -> int:
        if not buffer.startswith(frames.PREFACE):
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "not an HTTP/2 client")
        self._is_greeted = True
        return len(frames.PREFACE)

    def _check_turn(self, kind: int, flags: int, stream_id: int) -> None:
        """Where only one kind of frame may come, it has to be that."""
        if self._block is not None and (kind != FrameType.CONTINUATION or stream_id != self._block.stream_id):
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a header block broken off by another frame")
        if not self.is_settled and (kind != FrameType.SETTINGS or flags & frames.ACK):
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "the first frame is not SETTINGS")
        self.is_settled = True

    def _on_unknown(self, _flags: int, _stream_id: int, _payload: bytes) -> None:
        """A frame of an extension that we do not know is ignored."""
        self._guard.charge(Nuisance.CONTROL, self._now)

    def _on_headers(self, flags: int, stream_id: int, payload: bytes) -> None:
        block = frames.unpadded(payload) if flags & PADDED else payload
        if flags & PRIORITY_FIELDS:
            if len(block) < frames.PRIORITY_BYTES:
                is_padded_away = len(payload) > frames.PRIORITY_BYTES
                code = ErrorCode.PROTOCOL_ERROR if is_padded_away else ErrorCode.FRAME_SIZE_ERROR
                raise ConnectionFault(code, "HEADERS too short for its priority")
            block = block[frames.PRIORITY_BYTES :]
        ended = bool(flags & END_STREAM)
        if flags & END_HEADERS:
            self._on_block(stream_id, block, ended)
        else:
            self._block = _Block(stream_id, ended, [block], len(block))

    def _on_continuation(self, flags: int, stream_id: int, payload: bytes) -> None:
        block = self._block
        if block is None:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "CONTINUATION of nothing")
        self._guard.charge(Nuisance.EMPTY, self._now)
        block.pieces.append(payload)
        block.size += len(payload)
        if block.size > self._limits.header_block_bytes_max:
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, "a header block without end")
        if flags & END_HEADERS:
            self._block = None
            self._on_block(stream_id, b"".join(block.pieces), block.ended)


def all_data(buffer: bytes, at: int, stream_id: int, mark_max: int) -> tuple[bytes, int] | None:
    """What all DATA from here on brings, up to the stream's end, and where that is. None where it is not all here."""
    spans: list[tuple[int, int]] = []
    end = len(buffer)
    while (begin := at + HEADER_BYTES) <= end:
        mark, flags, whose = _UNPACK(buffer, at)
        at = begin + (mark >> 8)
        if flags > END_STREAM or whose != stream_id or mark & 0xFF or mark > mark_max or at > end:
            break
        if flags:
            return (_joined(buffer, spans, begin, at) if spans else buffer[begin:at]), at
        if at == begin:  # one that neither brings nor ends anything is to be counted
            break
        spans.append((begin, at))
    return None


def _joined(buffer: bytes, spans: list[tuple[int, int]], begin: int, end: int) -> bytes:
    """What lies within all these bounds; the last of them often hold nothing."""
    if begin < end:
        spans.append((begin, end))
    if len(spans) == 1:
        begin, end = spans[0]
        return buffer[begin:end]
    view = memoryview(buffer)
    return b"".join([view[begin:end] for begin, end in spans])
