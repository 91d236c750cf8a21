"""A client that sends the bytes of a case over a socket, and tells from the server's frames what came of them."""

import asyncio
import socket
from contextlib import suppress
from dataclasses import dataclass, field

from hpack import Decoder

from kinference.ids import Seconds
from tests.conformance.http2.case import Case, Outcome, Scope
from tests.conformance.http2.frames import (
    ACK,
    CALL,
    CODES,
    CONTINUATION,
    DATA,
    END_STREAM,
    GOAWAY,
    HEADERS,
    RST_STREAM,
    SETTINGS,
    frame,
    headers,
)

PROBE = 1_000_001
HEAD_BYTES = 9


@dataclass
class Seen:
    """What the server has sent so far."""

    frames: list[bytes] = field(default_factory=list)
    answers: dict[int, dict[str, str]] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)
    resets: dict[int, int] = field(default_factory=dict)
    data_bytes: dict[int, int] = field(default_factory=dict)
    goaways: list[int] = field(default_factory=list)
    is_closed: bool = False
    decoder: Decoder = field(default_factory=Decoder)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, head: bytes, payload: bytes) -> None:
        kind, flags, stream = head[3], head[4], int.from_bytes(head[5:]) & 0x7FFF_FFFF
        self.frames.append(head + payload)
        if kind in (HEADERS, CONTINUATION):
            answer = self.answers.setdefault(stream, {})
            answer.update((str(name), str(value)) for name, value in self.decoder.decode(payload))
        elif kind == DATA:
            self.data_bytes[stream] = self.data_bytes.get(stream, 0) + len(payload)
        elif kind == RST_STREAM:
            self.resets.setdefault(stream, int.from_bytes(payload))
        elif kind == GOAWAY:
            self.goaways.append(int.from_bytes(payload[4:8]))
        if kind in (HEADERS, DATA) and flags & END_STREAM:
            self.ended.add(stream)

    def is_over(self, stream: int) -> bool:
        return stream in self.ended or stream in self.resets

    def outcome(self, case: Case) -> Outcome:
        """The worst that happened."""
        code = next((code for code in self.goaways if code), None)
        if code is not None:
            return Outcome(Scope.CONNECTION, CODES[code] + ("" if self.is_closed else ", left open"))
        if self.is_closed:
            return Outcome(Scope.CONNECTION, "NO_ERROR" if self.goaways else "closed without GOAWAY")
        if self.resets.get(case.stream):
            return Outcome(Scope.STREAM, CODES[self.resets[case.stream]])
        if case.stream in self.ended:
            answer = self.answers[case.stream]
            status = answer.get("grpc-status")
            return Outcome(Scope.ANSWERED, answer[":status"] + (f", grpc-status {status}" if status else ""))
        if not self.is_over(PROBE):
            return Outcome(Scope.NONE, "and nothing is answered any more")
        if case.counts_data:
            return Outcome(Scope.NONE, f"{self.data_bytes.get(case.stream, 0)} bytes of DATA")
        return Outcome(Scope.NONE, "replied" if case.reply in self.frames else "")


class Client:
    """One connection for one case."""

    def __init__(self, port: int, patience: Seconds, settling: Seconds) -> None:
        self._port, self._patience, self._settling = port, patience, settling
        self._seen = Seen()

    async def play(self, case: Case) -> Outcome:
        """Send it all and wait for what comes, `settling` seconds longer than it seems to take."""
        loop = asyncio.get_running_loop()
        with socket.socket() as line:
            line.setblocking(False)
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await loop.sock_connect(line, ("127.0.0.1", self._port))
            reading = asyncio.create_task(self._read(line))
            try:
                await self._converse(line, case)
            finally:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
        return self._seen.outcome(case)

    async def _converse(self, line: socket.socket, case: Case) -> None:
        seen = self._seen
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience):
                await _send(line, case.greeting + case.sends)
                if case.then:
                    await self._wait(case.after or case.stream)
                    await _send(line, case.then)
                await _send(line, headers(PROBE, CALL, END_STREAM))
                await self._wait(PROBE, *(() if case.outcome.scope is Scope.NONE else (case.stream,)))
        if not seen.is_closed:
            await asyncio.sleep(self._settling)

    async def _wait(self, *streams: int) -> None:
        """Until these have ended, or the connection is closed, which follows a GOAWAY."""
        seen = self._seen
        while not seen.is_closed:
            if all(seen.is_over(stream) for stream in streams) and not any(seen.goaways):
                return
            await seen.changed.wait()
            seen.changed.clear()

    async def _read(self, line: socket.socket) -> None:
        loop, held = asyncio.get_running_loop(), b""
        while True:
            try:
                piece = await loop.sock_recv(line, 65_536)
            except ConnectionError:
                piece = b""
            if not piece:
                break
            held = await self._take(line, held + piece)
            self._seen.changed.set()
        self._seen.is_closed = True
        self._seen.changed.set()

    async def _take(self, line: socket.socket, held: bytes) -> bytes:
        """The frames that are whole; what is left is returned."""
        while len(held) >= HEAD_BYTES and len(held) >= (size := HEAD_BYTES + int.from_bytes(held[:3])):
            head = held[:HEAD_BYTES]
            self._seen.take(head, held[HEAD_BYTES:size])
            held = held[size:]
            if head[3] == SETTINGS and not head[4] & ACK:
                await _send(line, frame(SETTINGS, ACK, 0))
        return held


async def _send(line: socket.socket, content: bytes) -> None:
    with suppress(ConnectionError):  # the reader tells how the connection ended
        await asyncio.get_running_loop().sock_sendall(line, content)
