"""Calls broken off at random points, while others complete: nothing is left and nothing is half done.

How many is told by `--resets`: the suite takes a few hundred of each kind, `--resets 10000 --timeout 900` was run by hand.
"""

import asyncio
import struct
from functools import partial
from itertools import cycle
from random import Random

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, Event, StreamEnded, StreamReset

from kinference.core.waiting import AdmissionRules
from kinference.ids import ResponseId, StreamId
from kinference.picker.limits import PickerLimits
from kinference.ports import PickArguments, PickResult
from kinference.vocabulary import AbortReason
from kinference.wire.http2.frames import ErrorCode
from kinference.wire.proto import picker_pb2 as pb
from tests.conformance.serving import Served, Setup, served
from tests.unit.wire.http2.peer import framed

ROOMY = Setup(PickerLimits(admission=AdmissionRules(enabled=False)))
"""Where no Pick is held, however many have come at once."""
PUSHES, PULLS = 100, 20
BODY = b'{"model": "llama", "messages": [{"role": "user", "content": "' + b"word " * 400 + b'"}]}'
CHUNKS = [pb.BodyChunk(chunk=BODY[at : at + 200]).SerializeToString() for at in range(0, len(BODY), 200)]
LARGE = BODY.replace(b"word", b"word" * 60)
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


ENDS = ["fin", "abort", "goaway"]
"""How a connection ends: the client closes it, TCP resets it, or it says goodbye first."""


def holds(server: Served, size: int) -> bool:
    return server.desk.buffered_bytes == size


def any_code(rng: Random) -> int:
    return rng.choice([*map(int, ErrorCode), 0xFF])


def pick(server: Served, body: int) -> PickResult:
    picked = server.desk.pick(PickArguments(StreamId(body), "acme"), lambda: None)
    assert isinstance(picked, PickResult)
    return picked


async def break_pushes(caller: Caller, rng: Random, count: int) -> set[int]:
    """So many pushes on one connection, of which every tenth is whole and the rest are reset somewhere."""
    whole = set()
    for number in range(count):
        if number % 10 == 0:
            whole.add(caller.push(CHUNKS, end=True))
            continue
        stream_id = caller.push(CHUNKS[: rng.randrange(len(CHUNKS) + 1)], end=False)
        if rng.random() < 0.5:  # the server has seen a part when the reset comes
            caller.flush()
            await asyncio.sleep(0)
        caller.h2.reset_stream(stream_id, any_code(rng))
    return whole


async def test_pushes_broken_off_at_any_point_leave_nothing_and_disturb_nobody(resets: int) -> None:
    """Some by RST_STREAM with every code, some by the end of their connection, while others complete on both kinds."""
    rng, done, ends = Random(1), 0, cycle(ENDS)
    async with served(ROOMY, "own") as server:
        steady = await Caller.connect(server.target.port)
        while done < resets:
            caller = await Caller.connect(server.target.port)
            whole = await break_pushes(caller, rng, PUSHES)
            unharmed = {steady.push(CHUNKS, end=True) for _ in range(5)}
            caller.flush()
            steady.flush()
            await caller.finish(whole)
            for _ in range(PUSHES):  # these end with their connection
                caller.push(CHUNKS[: rng.randrange(len(CHUNKS) + 1)], end=False)
            caller.flush()
            if rng.random() < 0.5:
                await caller.writer.drain()
                await asyncio.sleep(0)
            await caller.close(next(ends))
            await steady.finish(unharmed)
            done += 2 * PUSHES - len(whole)
            await server.wait_until(partial(holds, server, (len(whole) + len(unharmed)) * len(BODY)))
            for one, streams in ((caller, whole), (steady, unharmed)):
                for stream_id in sorted(streams):
                    picked = pick(server, pb.PushBodyResponse.FromString(one.replies.pop(stream_id)[5:]).stream_id)
                    assert picked.body_total_bytes == len(BODY)
                    assert server.desk.reports.abort(picked.response_id, AbortReason.NOT_DISPATCHED)
            await server.wait_until_idle()
        await steady.close("fin")


async def pulls_begun(server: Served, caller: Caller, count: int) -> dict[int, ResponseId]:
    """Pulls of bodies that are larger than what a client takes at once, by their streams."""
    begun = {}
    for _ in range(count):
        body = server.desk.open(None)
        for at in range(0, len(LARGE), 16_384):
            server.desk.append(body, LARGE[at : at + 16_384])
        server.desk.finish(body)
        server.desk.commit(body)
        response_id = pick(server, body).response_id
        stream_id = caller.begin("PullBody")
        message = pb.PullBodyRequest(response_id=response_id).SerializeToString()
        caller.h2.send_data(stream_id, framed(message), end_stream=True)
        begun[stream_id] = response_id
    caller.flush()
    return begun


async def test_pulls_broken_off_at_any_point_give_their_bytes_back(resets: int) -> None:
    """The same for pulls: some are read to their end, some reset after what came so far, some end unread."""
    rng, done, ends = Random(2), 0, cycle(ENDS)
    async with served(ROOMY, "own") as server:
        while done < resets:
            caller = await Caller.connect(server.target.port)
            begun = await pulls_begun(server, caller, PULLS)
            if is_heard := rng.random() < 0.7:  # else a reset may come in one read with its request, which never begins
                await caller.read()
            streams = sorted(begun)
            rng.shuffle(streams)
            read, reset = set(streams[: PULLS // 10]), streams[PULLS // 10 : PULLS // 2]
            for stream_id in reset:
                if rng.random() < 0.3:
                    await caller.read()
                if stream_id not in caller.ended:
                    caller.h2.reset_stream(stream_id, any_code(rng))
                    caller.flush()
            await caller.finish(read)
            for stream_id in read:
                assert body_of(caller.replies[stream_id]) == LARGE
            await caller.close(next(ends))
            done += PULLS - len(read)
            if is_heard:
                await server.wait_until(partial(holds, server, 0))
            for response_id in begun.values():
                server.desk.reports.abort(response_id, AbortReason.PULL_FAILED)
            await server.wait_until_idle()


def body_of(reply: bytes) -> bytes:
    """What the messages of an answer carry."""
    pieces = []
    while reply:
        end = 5 + int.from_bytes(reply[1:5])
        pieces.append(pb.BodyChunk.FromString(reply[5:end]).chunk)
        reply = reply[end:]
    return b"".join(pieces)
