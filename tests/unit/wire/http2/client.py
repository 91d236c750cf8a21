"""A client that speaks HTTP/2 by the `h2` library, over a real socket."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from h2.config import H2Configuration
from h2.connection import ConnectionState, H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    InformationalResponseReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
)

Fields = Sequence[tuple[str, str]]


@dataclass
class Answer:
    """What has come on one stream."""

    head: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    interim: int = 0
    ended: bool = False
    reset: int | None = None

    @property
    def status(self) -> str:
        return self.head.get(":status", "")


class Client:
    """One connection. It takes what it is sent at once, unless it is told to be slow."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, checks: bool) -> None:
        self._reader, self._writer = reader, writer
        self.h2 = H2Connection(
            H2Configuration(
                client_side=True,
                header_encoding="utf-8",
                validate_outbound_headers=checks,
                normalize_outbound_headers=checks,
            )
        )
        self.h2.initiate_connection()
        self.answers: dict[int, Answer] = {}
        self.goaways: list[int] = []
        self.takes = True
        self._unread = b""
        self.is_lost = False
        self.flush()

    def flush(self) -> None:
        self._writer.write(self.h2.data_to_send())

    def send(self, method: str = "GET", path: str = "/", *more: tuple[str, str], end: bool = True) -> int:
        """Begin a request, as far as its head."""
        fields = ((":method", method), (":scheme", "http"), (":authority", "h"), (":path", path), *more)
        return self.send_fields(fields, end=end)

    def send_fields(self, fields: Fields, *, end: bool = True) -> int:
        stream_id: int = self.h2.get_next_available_stream_id()
        self.h2.send_headers(stream_id, list(fields), end_stream=end)
        self.answers[stream_id] = Answer()
        self.flush()
        return stream_id

    def send_body(self, stream_id: int, data: bytes, *, end: bool = False) -> None:
        for at in range(0, max(len(data), 1), 16_384):
            last = at + 16_384 >= len(data)
            self.h2.send_data(stream_id, data[at : at + 16_384], end_stream=end and last)
        self.flush()

    def reset(self, stream_id: int) -> None:
        self.h2.reset_stream(stream_id, 8)
        self.flush()

    async def read(self) -> None:
        """Take what comes next."""
        received = await self._reader.read(65_536)
        self.is_lost = not received
        self._unread += received
        while len(self._unread) >= 9 and len(self._unread) >= (stop := 9 + int.from_bytes(self._unread[:3])):
            frame, self._unread = self._unread[:stop], self._unread[stop:]
            for event in self.h2.receive_data(frame):
                self._take(event)
        self.flush()

    def _take(self, event: Event) -> None:
        if isinstance(event, ConnectionTerminated):
            self.goaways.append(int(event.error_code or 0))
            # h2 takes it for the end of everything; streams that are open go on all the same
            self.h2.state_machine.state = ConnectionState.CLIENT_OPEN
        answer = self.answers.get(getattr(event, "stream_id", 0) or 0, Answer())
        if isinstance(event, ResponseReceived):
            answer.head = {str(name): str(value) for name, value in event.headers}
        elif isinstance(event, InformationalResponseReceived):
            answer.interim += 1
        elif isinstance(event, DataReceived):
            answer.body += event.data
            if self.takes and event.flow_controlled_length:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, StreamEnded):
            answer.ended = True
        elif isinstance(event, StreamReset):
            answer.reset = int(event.error_code)

    async def answer(self, stream_id: int) -> Answer:
        """Wait until a stream is over."""
        answer = self.answers[stream_id]
        while not answer.ended and answer.reset is None and not self.is_lost:
            await self.read()
        return answer

    async def head(self, stream_id: int) -> Answer:
        """Wait until an answer has begun."""
        answer = self.answers[stream_id]
        while not answer.head:
            await self.read()
        return answer

    async def bytes_of(self, stream_id: int, size: int) -> bytes:
        """Wait until so much of an answer is there."""
        answer = self.answers[stream_id]
        while len(answer.body) < size:
            await self.read()
        return answer.body

    async def ask(self, method: str = "GET", path: str = "/", *more: tuple[str, str], body: bytes = b"") -> Answer:
        """A request and its whole answer."""
        stream_id = self.send(method, path, *more, end=not body)
        if body:
            self.send_body(stream_id, body, end=True)
        return await self.answer(stream_id)

    async def end(self) -> None:
        """Wait until the server has closed the connection."""
        while not self.is_lost:
            await self.read()


@asynccontextmanager
async def connected(port: int, tls: ssl.SSLContext | None = None, *, checks: bool = True) -> AsyncIterator[Client]:
    """A connection for the length of a block; without `checks` it says whatever it is told to."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    try:
        yield Client(reader, writer, checks=checks)
    finally:
        writer.close()
