"""Thousands of calls broken off at random points, while others complete: nothing is left and nothing is half done."""

import asyncio
import struct
from collections.abc import Iterator
from functools import partial
from random import Random

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, Event, StreamEnded, StreamReset

from kinference.ids import ResponseId, StreamId
from kinference.ports import PickArguments, PickResult
from kinference.vocabulary import AbortReason
from kinference.wire.http2.frames import ErrorCode
from kinference.wire.proto import picker_pb2 as pb
from tests.conformance.serving import ROOMY, Served, served
from tests.unit.wire.http2.peer import framed

CONNECTIONS, PUSHES = 20, 100
BODY = b'{"model": "llama", "messages": [{"role": "user", "content": "' + b"word " * 400 + b'"}]}'
CHUNKS = [pb.BodyChunk(chunk=BODY[at : at + 200]).SerializeToString() for at in range(0, len(BODY), 200)]
HEAD = [(":method", "POST"), (":scheme", "http"), (":authority", "here")]


class Caller:
    """A client by the h2 library, whose every byte is in the test's hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.h2 = H2Connection(H2Configuration(client_side=True, header_encoding=None))
        self.h2.initiate_connection()
        self.replies: dict[int, bytes] = {}
        self.ended: set[int] = set()

    @classmethod
    async def connect(cls, port: int) -> "Caller":
        caller = cls(*await asyncio.open_connection("127.0.0.1", port))
        caller.flush()
        await caller.read()  # the server's settings
        return caller

    def flush(self) -> None:
        self.writer.write(self.h2.data_to_send())

    def begin(self, method: str) -> int:
        stream_id: int = self.h2.get_next_available_stream_id()
        path = (":path", f"/kinference.v1.Picker/{method}")
        self.h2.send_headers(stream_id, [*HEAD, path, ("te", "trailers"), ("content-type", "application/grpc")])
        return stream_id

    def push(self, chunks: list[bytes], *, end: bool) -> int:
        stream_id = self.begin("PushBody")
        for chunk in chunks:
            self.h2.send_data(stream_id, framed(chunk))
        if end:
            self.h2.end_stream(stream_id)
        return stream_id

    async def read(self) -> None:
        """Take in what has arrived."""
        async with asyncio.timeout(30):
            data = await self.reader.read(65_536)
        assert data, "the server left"
        for event in self.h2.receive_data(data):
            self._note(event)
        self.flush()

    def _note(self, event: Event) -> None:
        match event:
            case DataReceived():
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                self.replies[event.stream_id] = self.replies.get(event.stream_id, b"") + event.data
            case StreamEnded() | StreamReset():
                self.ended.add(event.stream_id)
            case _:
                pass

    async def finish(self, streams: set[int]) -> None:
        """Read until all of these have ended."""
        while not streams <= self.ended:
            await self.read()

    async def close(self, how: str) -> None:
        if how == "abort":
            linger = struct.pack("ii", 1, 0)
            self.writer.get_extra_info("socket").setsockopt(1, 13, linger)
            self.writer.transport.abort()
            return
        if how == "goaway":
            self.h2.close_connection()
            self.flush()
        self.writer.close()
        await self.writer.wait_closed()


def holds(server: Served, size: int) -> bool:
    return server.desk.buffered_bytes == size


def codes(rng: Random) -> Iterator[int]:
    while True:
        yield rng.choice([*ErrorCode, 0xFF])


@pytest.mark.parametrize("seed", [1, 2])
async def test_pushes_reset_at_any_point_leave_nothing_and_disturb_nobody(seed: int) -> None:
    rng = Random(seed)
    code = codes(rng)
    async with served(ROOMY, "own") as server:
        for _ in range(CONNECTIONS):
            caller = await Caller.connect(server.target.port)
            whole = set()
            for number in range(PUSHES):
                if number % 10 == 0:
                    whole.add(caller.push(CHUNKS, end=True))
                    continue
                stream_id = caller.push(CHUNKS[: rng.randrange(len(CHUNKS) + 1)], end=False)
                if rng.random() < 0.5:  # the server has seen a part when the reset comes
                    caller.flush()
                    await asyncio.sleep(0)
                caller.h2.reset_stream(stream_id, next(code))
            caller.flush()
            await caller.finish(whole)
            await server.wait_until(partial(holds, server, len(whole) * len(BODY)))
            for stream_id in sorted(whole):
                pushed = pb.PushBodyResponse.FromString(caller.replies[stream_id][5:])
                picked = server.desk.pick(PickArguments(StreamId(pushed.stream_id), "acme"), lambda: None)
                assert isinstance(picked, PickResult)
                assert picked.body_total_bytes == len(BODY)
                assert server.desk.abort(picked.response_id, AbortReason.NOT_DISPATCHED)
            await server.wait_until_idle()
            await caller.close(rng.choice(["fin", "abort", "goaway"]))


@pytest.mark.parametrize("how", ["fin", "abort", "goaway"])
async def test_connections_that_end_take_their_pushes_with_them(how: str) -> None:
    rng = Random(3)
    async with served(ROOMY, "own") as server:
        for _ in range(10):
            caller = await Caller.connect(server.target.port)
            for _ in range(50):
                caller.push(CHUNKS[: rng.randrange(len(CHUNKS) + 1)], end=False)
            caller.flush()
            await caller.writer.drain()
            if rng.random() < 0.5:
                await server.wait_until(lambda: server.desk.buffered_bytes > 0)
            await caller.close(how)
        await server.wait_until_idle()


@pytest.mark.parametrize("how", ["reset", "fin", "abort", "goaway"])
async def test_pulls_broken_off_give_their_bytes_back(how: str) -> None:
    rng, issued = Random(4), set()
    async with served(ROOMY, "own") as server:
        for _ in range(10):
            caller = await Caller.connect(server.target.port)
            large = BODY.replace(b"word", b"word " * 60)
            chunk = pb.BodyChunk(chunk=large).SerializeToString()
            ids = []
            for _ in range(8):
                stream_id = caller.begin("PushBody")
                message = framed(chunk)
                for at in range(0, len(message), 16_384):
                    caller.h2.send_data(stream_id, message[at : at + 16_384], end_stream=at + 16_384 >= len(message))
                    caller.flush()
                await caller.finish({stream_id})
                ids.append(pb.PushBodyResponse.FromString(caller.replies[stream_id][5:]).stream_id)
            pulls = []
            for body in ids:
                request = pb.PickRequest(body_stream_id=body, tenant="acme").SerializeToString()
                picked = caller.begin("Pick")
                caller.h2.send_data(picked, framed(request), end_stream=True)
                caller.flush()
                await caller.finish({picked})
                response = pb.PickResponse.FromString(caller.replies[picked][5:])
                issued.add(ResponseId(response.response_id))
                pull = caller.begin("PullBody")
                message = pb.PullBodyRequest(response_id=response.response_id).SerializeToString()
                caller.h2.send_data(pull, framed(message), end_stream=True)
                pulls.append(pull)
            caller.flush()
            await caller.writer.drain()
            await asyncio.sleep(rng.random() / 100)
            if how == "reset":
                for pull in sorted(set(pulls) - caller.ended):
                    caller.h2.reset_stream(pull, ErrorCode.CANCEL)
                caller.flush()
                await server.wait_until(lambda: server.desk.buffered_bytes == 0)
            await caller.close("fin" if how == "reset" else how)
        await server.wait_until(lambda: server.desk.buffered_bytes == 0)
        for response_id in sorted(issued):
            server.desk.abort(response_id, AbortReason.PULL_FAILED)
        await server.wait_until_idle()
