"""The whole Picker flow (push, pick, pull, two reports) on both gRPC carriers: flows a second of server CPU, and how
long a Pick takes.

Each server is a process of its own, both are up all the time, and rounds alternate between them. The load writes
frames by hand, with the header blocks that grpcio sends: `same` after the first request all indexed, `plain` with a
request id that is new each time and never indexed, `indexed` with one that is Huffman-coded and indexed each time, as
grpc-go does. Three kinds of work: `carry` keeps bodies and answers constants, so that what is left is the carrier;
`book` is the product's own picker without the decision, that is the contract's bookkeeping; `full` has the decision too.

    .venv/bin/python bench/picker.py --rounds 3
    .venv/bin/python bench/picker.py --book         # what bookkeeping costs beside the carrier, alternating
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import TypeAlias, cast

import uvloop
from hpack import Encoder, NeverIndexedHeaderTuple

from kinference.core.admission import Admission
from kinference.core.decision import Decision, EndpointChoice
from kinference.core.fleet import EndpointSpec, Fleet
from kinference.core.pick import Router
from kinference.core.policy import RoutingRules
from kinference.ids import Address, ObjectRef
from kinference.observe.metrics import Metrics
from kinference.picker import desk as picker_desk
from kinference.picker.choosing import Chosen
from kinference.picker.desk import Desk
from kinference.picker.id_source import IdSource
from kinference.picker.limits import PickerLimits
from kinference.picker.service import picker_service
from kinference.ports import PickArguments
from kinference.runtime import collector
from kinference.runtime.clock import SystemClock
from kinference.vocabulary import Outcome
from kinference.wire.grpc_server import GrpcServer
from kinference.wire.grpcio_server import GrpcioServer
from kinference.wire.http2 import frames
from kinference.wire.http2.outbox import Outbox
from kinference.wire.http2.streams import Stream
from kinference.wire.proto import picker_pb2 as pb
from kinference.wire.rpc import Call, Left, RpcReply, RpcService, replying

SERVICE = "kinference.v1.Picker"
METHODS = ("PushBody", "Pick", "PullBody", "ReportFirstToken", "ReportFinalToken")
CARRIERS = {"own": GrpcServer, "grpcio": GrpcioServer}
WINDOW = 2**31 - 1
Rival: TypeAlias = tuple[str, str]
"""A carrier, and the work on it."""
Rivals: TypeAlias = list[Rival]


# --- the server ----------------------------------------------------------------------------------


def choose_the_first(_admission: Admission, _arguments: PickArguments, _body: bytes, _now: float) -> Chosen:
    """The decision of which nothing is to be measured."""
    choice = EndpointChoice(ObjectRef("default", "gpu"), Address("10.0.0.0:8000"), "llama", 1)
    return Chosen(Decision(Outcome.OK, "expect 26 ms, 0 of 250 tokens cached", choice), "llama")


def own_picker(work: str) -> RpcService:
    """The product's own, over a small fleet."""
    if work == "book":
        setattr(picker_desk, "choose_or_wait", choose_the_first)  # noqa: B010 - it is no attribute of theirs to assign
    fleet, pool = Fleet(), ObjectRef("default", "gpu")
    addresses = [Address(f"10.0.0.{number}:8000") for number in range(4)]
    fleet.set_pool(pool, [EndpointSpec(pool, address, models=("llama",)) for address in addresses])
    for address in addresses:
        fleet.set_ready(pool, address, ready=True)
    limits = PickerLimits(buffer_max_bytes=2**32)
    desk = Desk(Router(fleet, RoutingRules(), Random(1)), limits, SystemClock(), Metrics(), IdSource())
    return picker_service(desk)


class Carried:
    """A picker that decides nothing."""

    def __init__(self) -> None:
        self.bodies: dict[int, list[bytes]] = {}
        self.count = 0

    def service(self) -> RpcService:
        whole: RpcReply = self.whole_push
        replies = dict(zip(METHODS, (whole, self.pick, self.pull, self.first, self.final), strict=True))
        handlers = {name: replying(reply) for name, reply in replies.items()} | {METHODS[0]: self.push}
        return RpcService(SERVICE, handlers, inline=True, replies=replies)

    async def push(self, call: Call) -> None:
        body = []
        while (message := await call.receive(30.0)) is not None:
            body.append(pb.BodyChunk.FromString(message).chunk)
        await call.send(self.kept(body))

    def whole_push(self, message: bytes | None, _call: Call) -> bytes:
        return self.kept([pb.BodyChunk.FromString(message or b"").chunk])

    def kept(self, body: list[bytes]) -> bytes:
        self.count += 1
        self.bodies[self.count] = body
        return pb.PushBodyResponse(stream_id=self.count, total_bytes=sum(map(len, body))).SerializeToString()

    def pick(self, message: bytes | None, _call: Call) -> bytes:
        request = pb.PickRequest.FromString(message or b"")
        response = pb.PickResponse(response_id=request.body_stream_id, requested_model="llama")
        response.outcome = 1  # type: ignore[assignment] # the stubs type an enum's numbers by their own names
        response.local.endpoint = "10.0.0.1:8000"
        return response.SerializeToString()

    def pull(self, message: bytes | None, call: Call) -> bytes | Left:
        messages = self.bodies.pop(pb.PullBodyRequest.FromString(message or b"").response_id)
        first = pb.BodyChunk(chunk=messages[0]).SerializeToString()
        return first if len(messages) == 1 and call.takes(first) else self.send_all(call, messages)

    async def send_all(self, call: Call, messages: list[bytes]) -> None:
        for chunk in messages:
            await call.send(pb.BodyChunk(chunk=chunk).SerializeToString())

    def first(self, message: bytes | None, _call: Call) -> bytes:
        pb.ReportFirstTokenRequest.FromString(message or b"")
        return pb.ReportFirstTokenResponse(acknowledged=True).SerializeToString()

    def final(self, message: bytes | None, _call: Call) -> bytes:
        pb.ReportFinalTokenRequest.FromString(message or b"")
        return pb.ReportFinalTokenResponse(acknowledged=True).SerializeToString()


async def serve(wire: str, work: str) -> None:
    server = CARRIERS[wire]("127.0.0.1:0", [Carried().service() if work == "carry" else own_picker(work)])
    port = await server.start()
    collector.settle()
    print(port, flush=True)
    await asyncio.Event().wait()


@contextmanager
def served(wire: str, work: str) -> Iterator[tuple[int, int]]:
    """Process id and port of a server."""
    command = [sys.executable, __file__, "--serve", wire, "--work", work]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.pid, int(process.stdout.readline())
        finally:
            process.kill()


def cpu_seconds(pid: int) -> float:
    """Of all threads that live."""
    return (
        sum(int(task.joinpath("schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir())
        / 1e9
    )


# --- the load ------------------------------------------------------------------------------------


class Blocks:
    """Header blocks as grpcio writes them."""

    def __init__(self, authority: str, headers: str) -> None:
        self.kind = headers
        self.encoder = Encoder()
        self.common = [
            (":method", "POST"),
            (":scheme", "http"),
            (":authority", authority),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            ("user-agent", "grpc-python-asyncio/1.85.3 grpc-c/55.0.0 (linux; chttp2)"),
            ("grpc-accept-encoding", "identity, deflate, gzip"),
        ]
        self.first = {method: self.encode(method) for method in METHODS}
        self.later = {method: self.encode(method) for method in METHODS}
        self.count = 0

    def encode(self, method: str, *more: tuple[str, str]) -> bytes:
        return self.encoder.encode([(":path", f"/{SERVICE}/{method}"), *self.common, *more], huffman=False)

    def block(self, method: str) -> bytes:
        if method in self.first:
            return self.first.pop(method)
        if self.kind == "same":
            return self.later[method]
        self.count += 1
        name, value = "kinference-client-request-id", f"req-{self.count:012d}"
        if self.kind == "plain":
            encoded = self.encoder.encode([NeverIndexedHeaderTuple(name, value)], huffman=False)
            return self.later[method] + encoded
        return self.encoder.encode(
            [(":path", f"/{SERVICE}/{method}"), *self.common, (name, value)], huffman=True
        )  # each one enters the table, so that what was indexed moves on


class Load(asyncio.Protocol):
    """One connection with many flows in flight, each starting anew when it ends."""

    def __init__(self, authority: str, headers: str, body: bytes) -> None:
        self.blocks = Blocks(authority, headers)
        self.body = body
        self.outbox = Outbox(2**30)
        self.peer_window = frames.WINDOW_DEFAULT
        self.streams: dict[int, Stream] = {}
        self.replies: dict[int, list[bytes]] = {}
        self.steps: dict[int, tuple[int, int]] = {}
        self.began: dict[int, float] = {}
        self.next_id = 1
        self.rest = b""
        self.received = 0
        self.flows = self.started = 0
        self.pick_ms: list[float] = []
        self.stopping = False
        self.idle = asyncio.Event()
        self.active = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.write(
            frames.PREFACE + frames.settings({4: 2**24, 5: 2**22}) + frames.window_update(0, WINDOW - 65535)
        )

    def begin(self, in_flight: int) -> None:
        self.stopping = False
        self.idle.clear()
        for _ in range(in_flight):
            self.push()
        self.flush()

    def push(self) -> None:
        self.active += 1
        self.started += 1
        body = self.body[:-30] + b"%012d" % self.started + self.body[-18:]
        stream = self.open(0, 0)
        for at in range(0, len(body), 2**20 - 2**10):
            self.send(stream, pb.BodyChunk(chunk=body[at : at + 2**20 - 2**10]).SerializeToString())
        if stream.queue is None:
            self.outbox.write(frames.frame(frames.FrameType.DATA, frames.END_STREAM, stream.id))

    def open(self, step: int, response_id: int) -> Stream:
        stream = Stream(self.next_id, self.peer_window, 0)
        self.next_id += 2
        self.streams[stream.id], self.replies[stream.id] = stream, []
        self.steps[stream.id] = step, response_id
        block = self.blocks.block(METHODS[step])
        self.outbox.write(frames.frame(frames.FrameType.HEADERS, frames.END_HEADERS, stream.id, block))
        return stream

    def send(self, stream: Stream, message: bytes) -> None:
        self.outbox.send(stream, b"\0" + len(message).to_bytes(4) + message)

    def call(self, step: int, response_id: int, message: bytes) -> None:
        stream = self.open(step, response_id)
        framed = b"\0" + len(message).to_bytes(4) + message
        if self.outbox.window >= len(framed):
            self.outbox.write(frames.frame(frames.FrameType.DATA, frames.END_STREAM, stream.id, framed))
            self.outbox.window -= len(framed)
        else:
            self.outbox.send(stream, framed)

    def data_received(self, data: bytes) -> None:
        buffer, at = self.rest + data, 0
        while len(buffer) - at >= 9:
            size, flags, stream_id = frames.HEADER.unpack_from(buffer, at)
            stop = at + 9 + (size >> 8)
            if stop > len(buffer):
                break
            self.on_frame(size & 0xFF, flags, stream_id, buffer[at + 9 : stop])
            at = stop
        self.rest = buffer[at:]
        self.flush()

    def on_frame(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        if kind == 0:
            self.received += len(payload)
            self.replies[stream_id].append(payload)
        elif kind == 1 and flags & frames.END_STREAM:
            self.ended(stream_id)
        elif kind == 4 and not flags & 1:
            for offset in range(0, len(payload), 6):
                if payload[offset + 1] == 4:
                    self.peer_window = int.from_bytes(payload[offset + 2 : offset + 6])
            self.outbox.write(frames.frame(frames.FrameType.SETTINGS, frames.ACK, 0))
        elif kind == 6 and not flags & 1:
            self.outbox.write(frames.frame(frames.FrameType.PING, frames.ACK, 0, payload))
        elif kind == 8:
            self.on_window(stream_id, int.from_bytes(payload))
        elif kind in (3, 7) and int.from_bytes(payload[-4:]) and (kind == 7 or stream_id in self.streams):
            raise SystemExit(f"the server gave up: {kind} {payload!r}")

    def on_window(self, stream_id: int, increment: int) -> None:
        if stream_id == 0:
            self.outbox.window += increment
        elif stream_id in self.streams:
            self.streams[stream_id].send_window += increment
            self.outbox.window_grew(self.streams[stream_id])
        for stream in self.outbox.turn():
            self.outbox.write(frames.frame(frames.FrameType.DATA, frames.END_STREAM, stream.id))

    def ended(self, stream_id: int) -> None:
        step, response_id = self.steps.pop(stream_id)
        del self.streams[stream_id]
        reply = b"".join(self.replies.pop(stream_id))
        if step == 0:
            pushed = pb.PushBodyResponse.FromString(reply[5:])
            self.call(1, 0, pb.PickRequest(body_stream_id=pushed.stream_id, tenant="acme").SerializeToString())
            self.began[self.next_id - 2] = time.perf_counter()
        elif step == 1:
            self.pick_ms.append((time.perf_counter() - self.began.pop(stream_id)) * 1e3)
            response_id = pb.PickResponse.FromString(reply[5:]).response_id
            assert response_id, reply
            self.call(2, response_id, pb.PullBodyRequest(response_id=response_id).SerializeToString())
        elif step == 2:
            assert len(reply) >= len(self.body), len(reply)
            report = pb.ReportFirstTokenRequest(response_id=response_id, observed_ttft_ms=12, upstream_status=200)
            self.call(3, response_id, report.SerializeToString())
        elif step == 3:
            final = pb.ReportFinalTokenRequest(
                response_id=response_id, model="llama", prompt_tokens=100, completion_tokens=20
            )
            self.call(4, response_id, final.SerializeToString())
        else:
            self.flow_ended()

    def flow_ended(self) -> None:
        self.flows += 1
        self.active -= 1
        if not self.stopping:
            self.push()
        elif not self.active:
            self.idle.set()

    def flush(self) -> None:
        if self.received > 2**29:
            self.outbox.write(frames.window_update(0, self.received))
            self.received = 0
        self.transport.write(self.outbox.take())


def chat(size: int) -> bytes:
    body = json.dumps({"model": "llama", "messages": [{"role": "user", "content": "x"}]}).encode()
    return body.replace(b'"x"', b'"' + b"word " * ((size - len(body)) // 5) + b"." * 40 + b'"')


async def measure(pid: int, load: Load, seconds: float, in_flight: int) -> tuple[float, float]:
    """Flows a second of server CPU, and of wall time."""
    load.flows = 0
    load.pick_ms.clear()
    cpu, wall = cpu_seconds(pid), time.perf_counter()
    load.begin(in_flight)
    await asyncio.sleep(seconds)
    load.stopping = True
    await load.idle.wait()
    return load.flows / max(0.01, cpu_seconds(pid) - cpu), load.flows / (time.perf_counter() - wall)


async def compare(rivals: Rivals, options: argparse.Namespace, headers: str, size: int, in_flight: int) -> None:
    """One line of the table."""
    loop, body = asyncio.get_running_loop(), chat(size)
    rates: dict[Rival, list[float]] = {rival: [] for rival in rivals}
    picks: dict[Rival, list[float]] = {rival: [] for rival in rivals}
    with contextmanager(all_of)(rivals) as servers:
        loads = {}
        for rival, (pid, port) in servers.items():
            load = Load(f"127.0.0.1:{port}", headers, body)
            await loop.create_connection(partial(same, load), "127.0.0.1", port)
            loads[rival] = load
            await asyncio.sleep(0.1)
            await measure(pid, load, 0, 1)  # one flow, which fills the table of header fields
            await measure(pid, load, 0.5, in_flight)
        for _ in range(options.rounds):
            for rival, load in loads.items():
                rates[rival].append((await measure(servers[rival][0], load, options.seconds, in_flight))[0])
                picks[rival] += load.pick_ms
        for load in loads.values():
            load.transport.close()
    print(f"{headers:8} {size:8} B {in_flight:4} in flight{row(rates, picks)}", flush=True)


def same(load: Load) -> Load:
    return load


def all_of(rivals: Rivals) -> Iterator[dict[Rival, tuple[int, int]]]:
    if not rivals:
        yield {}
        return
    with served(*rivals[0]) as first, contextmanager(all_of)(rivals[1:]) as rest:
        yield {rivals[0]: first, **rest}


def row(rates: dict[Rival, list[float]], picks: dict[Rival, list[float]]) -> str:
    """Each rival's figures, and how its rate compares with the first one's."""
    text, first = "", None
    for rival, values in picks.items():
        rate, cuts = statistics.median(rates[rival]), statistics.quantiles(values, n=100)
        spread = f"{min(rates[rival]):.0f}..{max(rates[rival]):.0f}"
        text += f" | {' '.join(rival)} {rate:7.0f} flows/CPU-s ({spread}) pick p50 {cuts[49]:.2f} p99 {cuts[98]:.2f} ms"
        first = first or rate
        text += f", {rate / first:.1f} x" if rate != first else ""
    return text


async def run(options: argparse.Namespace) -> None:
    lines = [[("grpcio", work), ("own", work)] for work in options.work]
    if options.book:
        lines = [[("own", "carry"), ("own", "book"), ("own", "full")]]
    for rivals in lines:
        for headers in options.headers:
            for size in options.sizes:
                for in_flight in options.in_flight:
                    await compare(rivals, options, headers, size, in_flight)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--serve", choices=CARRIERS, help="be the server; what the others start")
    parser.add_argument("--work", nargs="+", default=["carry", "full"], choices=["carry", "book", "full"])
    parser.add_argument("--book", action="store_true", help="compare the three kinds of work on our own carrier")
    parser.add_argument("--headers", nargs="+", default=["same", "plain", "indexed"])
    parser.add_argument("--sizes", nargs="+", type=int, default=[1024, 16384, 1048576])
    parser.add_argument("--in-flight", nargs="+", type=int, default=[1, 32, 256])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    uvloop.run(serve(options.serve, options.work[0]) if options.serve else run(options))


if __name__ == "__main__":
    main()
