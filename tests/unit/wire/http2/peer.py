"""A client's side of a connection, by hand, and a server's side that has been greeted."""

from dataclasses import dataclass, field

from hpack import Decoder, Encoder

from kinference.wire.http2 import frames
from kinference.wire.http2.connection import Http2Connection
from kinference.wire.http2.events import Event
from kinference.wire.http2.frames import FrameType
from kinference.wire.http2.guard import Http2Limits
from kinference.wire.http2.requests import Request

REQUEST = ((":method", "POST"), (":scheme", "http"), (":authority", "here"), (":path", "/s/m"))
HELLO = frames.PREFACE + frames.frame(FrameType.SETTINGS, 0, 0)

Frame = tuple[int, int, int, bytes]
"""Type, flags, stream, payload."""


def same(request: Request) -> Request:
    return request


def split(data: bytes) -> list[Frame]:
    found, at = [], 0
    while at < len(data):
        size, flags, stream_id = frames.HEADER.unpack_from(data, at)
        stop = at + 9 + (size >> 8)
        found.append((size & 0xFF, flags, stream_id, data[at + 9 : stop]))
        at = stop
    return found


def faults(sent: list[Frame]) -> list[tuple[str, int, int]]:
    """RST_STREAM and GOAWAY, with stream and code."""
    kinds = {FrameType.RST_STREAM: "stream", FrameType.GOAWAY: "connection"}
    return [
        (kinds[FrameType(kind)], stream_id, int.from_bytes(payload[:4] if kind == 3 else payload[4:8]))
        for kind, _, stream_id, payload in sent
        if kind in kinds
    ]


def framed(message: bytes) -> bytes:
    """A gRPC message as it travels."""
    return b"\0" + len(message).to_bytes(4) + message


def data(stream_id: int, payload: bytes, *, end: bool = False) -> bytes:
    return frames.frame(FrameType.DATA, frames.END_STREAM if end else 0, stream_id, payload)


@dataclass
class Talk:
    """A server's connection, greeted, with what a client needs to talk to it."""

    limits: Http2Limits = field(default_factory=Http2Limits)
    now: float = 0.0

    def __post_init__(self) -> None:
        self.encoder, self.decoder = Encoder(), Decoder()
        self.connection: Http2Connection[Request] = Http2Connection(same, self.limits, self.now)
        self.answers = self.connection.answers
        assert self.feed(HELLO) == []
        self.greeting = self.sent()

    def feed(self, received: bytes) -> list[Event[Request]]:
        return self.connection.feed(received, self.now)

    def sent(self) -> list[Frame]:
        return split(self.connection.take_output())

    def block(self, *fields: tuple[str, str]) -> bytes:
        encoded: bytes = self.encoder.encode(list(fields), huffman=False)
        return encoded

    def request(self, stream_id: int, *more: tuple[str, str], end: bool = False) -> bytes:
        flags = frames.END_STREAM if end else 0
        return frames.headers(flags, stream_id, self.block(*REQUEST, *more))

    def open(self, stream_id: int = 1, *, end: bool = False) -> None:
        assert len(self.feed(self.request(stream_id, end=end))) == 1
