"""A raw HTTP/2 connection, for what a gRPC library hides: cut messages, resets to the frame, windows that stay shut."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import hpack

from kinference.conformance.client import CALL_TIMEOUT, SERVICE, Metadata
from kinference.conformance.target import Target
from kinference.ids import Seconds

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
END_STREAM = ACK = 0x1
END_HEADERS = 0x4
PADDED, PRIORITY = 0x8, 0x20
CANCEL = 8
INITIAL_WINDOW = 4
HEAD_BYTES = 9
WINDOW_DEFAULT = 65_535


def frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    """Any frame."""
    return len(payload).to_bytes(3) + bytes((kind, flags)) + stream_id.to_bytes(4) + payload


def framed(message: bytes) -> bytes:
    """A message of gRPC: not compressed, its length, itself."""
    return b"\0" + len(message).to_bytes(4) + message


def header_block(fields: Sequence[tuple[str, str]]) -> bytes:
    """Header fields, each spelled out: no table, no Huffman code."""
    return b"".join(b"\0" + _string(name) + _string(value) for name, value in fields)


def _string(text: str) -> bytes:
    octets = text.encode()
    if len(octets) < 0x7F:  # noqa: PLR2004 - what fits beside the first bit
        return bytes((len(octets),)) + octets
    rest, length = len(octets) - 0x7F, bytearray((0x7F,))
    while rest > 0x7F:  # noqa: PLR2004 - seven bits a byte
        length.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes((*length, rest)) + octets


@dataclass(slots=True)
class Answer:
    """What has come back on one stream so far."""

    headers: dict[str, str] = field(default_factory=dict)
    data: bytearray = field(default_factory=bytearray)
    ended: bool = False
    reset: int | None = None

    @property
    def is_over(self) -> bool:
        return self.ended or self.reset is not None

    @property
    def grpc_status(self) -> int | None:
        """None until the server has said one."""
        status = self.headers.get("grpc-status", "")
        return int(status) if status.isascii() and status.isdigit() else None


class RawConnection:
    """Frames out as they are told, frames in while somebody waits for an answer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: Target) -> None:
        self._reader, self._writer, self._target = reader, writer, target
        self._decoder = hpack.Decoder()
        self._answers: dict[int, Answer] = {}
        self._next_stream = 1

    def begin(self, window: int) -> None:
        """The preface; `window` is how much the server may send on each stream before it is told that it was read."""
        settings = INITIAL_WINDOW.to_bytes(2) + window.to_bytes(4)
        self._writer.write(PREFACE + frame(SETTINGS, 0, 0, settings))

    def call(self, method: str, metadata: Metadata = ()) -> int:
        """Open a stream for a call; what it sends follows by `send`."""
        stream_id, self._next_stream = self._next_stream, self._next_stream + 2
        security = self._target.security
        fields = [
            (":method", "POST"),
            (":scheme", "https" if security.tls else "http"),
            (":path", SERVICE + method),
            (":authority", self._target.address),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            *([("authorization", f"Bearer {security.token}")] if security.token else []),
            *metadata,
        ]
        self._answers[stream_id] = Answer()
        self._writer.write(frame(HEADERS, END_HEADERS, stream_id, header_block(fields)))
        return stream_id

    def send(self, stream_id: int, octets: bytes, *, end: bool) -> None:
        """Bytes of a call's messages, few enough for the server's first window."""
        self._writer.write(frame(DATA, END_STREAM if end else 0, stream_id, octets))

    def reset(self, stream_id: int) -> None:
        self._writer.write(frame(RST_STREAM, 0, stream_id, CANCEL.to_bytes(4)))

    def open_window(self, stream_id: int, increment: int) -> None:
        """Let the server send so much more, on the stream and on the connection."""
        for where in (stream_id, 0):
            self._writer.write(frame(WINDOW_UPDATE, 0, where, increment.to_bytes(4)))

    def answer(self, stream_id: int) -> Answer:
        return self._answers[stream_id]

    async def read_until(self, is_done: Callable[[], bool], within: Seconds) -> bool:
        """Read frames until it is done, or time is up: false. Raises ConnectionError when the server hangs up."""
        try:
            async with asyncio.timeout(within):
                await self._writer.drain()
                while not is_done():
                    await self._read_frame()
        except TimeoutError:
            return False
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise ConnectionError("the server closed the connection") from error
        return True

    async def finished(self, stream_id: int) -> Answer:
        """The whole answer, as far as it came in the time that a call may take."""
        answer = self._answers[stream_id]
        await self.read_until(lambda: answer.is_over, CALL_TIMEOUT)
        return answer

    async def _read_frame(self) -> None:
        head = await self._reader.readexactly(HEAD_BYTES)
        payload = await self._reader.readexactly(int.from_bytes(head[:3]))
        kind, flags, stream_id = head[3], head[4], int.from_bytes(head[5:]) & 0x7FFFFFFF
        if kind == SETTINGS and not flags & ACK:
            self._writer.write(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            self._writer.write(frame(PING, ACK, 0, payload))
        elif kind == HEADERS:
            await self._read_headers(flags, stream_id, payload)
        elif kind == DATA:
            answer = self._answers[stream_id]
            answer.data += _unpadded(flags, payload)
            answer.ended |= bool(flags & END_STREAM)
        elif kind == RST_STREAM:
            self._answers[stream_id].reset = int.from_bytes(payload)

    async def _read_headers(self, flags: int, stream_id: int, payload: bytes) -> None:
        block = _unpadded(flags, payload)[5 if flags & PRIORITY else 0 :]
        ends = flags
        while not ends & END_HEADERS:
            head = await self._reader.readexactly(HEAD_BYTES)
            block += await self._reader.readexactly(int.from_bytes(head[:3]))
            ends = head[4]
        answer = self._answers[stream_id]
        answer.headers |= {str(name): str(value) for name, value in self._decoder.decode(block)}
        answer.ended |= bool(flags & END_STREAM)


@asynccontextmanager
async def raw_connection(target: Target, window: int = WINDOW_DEFAULT) -> AsyncIterator[RawConnection]:
    """A connection of the suite's own framing; leaving the block closes it."""
    reader, writer = await asyncio.open_connection(target.host, target.port, ssl=target.security.ssl_context)
    try:
        connection = RawConnection(reader, writer, target)
        connection.begin(window)
        yield connection
    finally:
        writer.close()


def _unpadded(flags: int, payload: bytes) -> bytes:
    return payload[1 : len(payload) - payload[0]] if flags & PADDED else payload
