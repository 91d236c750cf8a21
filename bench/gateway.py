"""What the gateway adds: latency against direct at one connection, and requests per CPU-second at many.

Processes: an engine that answers constants at once, `kinference serve --engine` once for each carrier, and this load.
Direct rounds and those through each gateway alternate, so that the machine's drift falls on all alike. Ratios carry
over to other machines, absolute figures do not.

    .venv/bin/python bench/gateway.py --rounds 5 --wire own grpcio
"""

import argparse
import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import uvloop

MODEL = "bench"
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
UNARY = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": MODEL,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11},
    }
).encode()


def compact(value: object) -> bytes:
    """JSON as engines write it."""
    return json.dumps(value, separators=(",", ":")).encode()


def sse(events: int) -> bytes:
    """A whole streamed answer, in chunked framing, one event a chunk."""
    deltas = [{"choices": [{"index": 0, "delta": {"content": "word "}, "finish_reason": None}]}] * (events - 1)
    deltas.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    lines = [b"data: " + compact({"id": "1", "model": MODEL, **delta}) + b"\n\n" for delta in deltas]
    return (
        b"".join(f"{len(line):x}\r\n".encode() + line + b"\r\n" for line in (*lines, b"data: [DONE]\n\n"))
        + b"0\r\n\r\n"
    )


class ConstantEngine(asyncio.Protocol):
    """Answers every POST with a constant and GETs well enough for discovery; no parsing worth the name."""

    streamed = sse(50)

    def __init__(self) -> None:
        self.buffer = b""
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's has no such base class

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end].lower()
            length = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0] or 0)
            if len(self.buffer) < end + 4 + length:
                return
            body, self.buffer = self.buffer[end + 4 : end + 4 + length], self.buffer[end + 4 + length :]
            self.answer(head, body)

    def answer(self, head: bytes, body: bytes) -> None:
        assert self.transport is not None
        if head.startswith(b"get /v1/models"):
            self.send(json.dumps({"object": "list", "data": [{"id": MODEL, "object": "model"}]}).encode())
        elif b'"stream":true' in body:
            self.transport.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
                + self.streamed
            )
        else:
            self.send(UNARY)

    def send(self, body: bytes) -> None:
        assert self.transport is not None
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
        self.transport.write(head + body)


async def serve_constants(port_file: Path) -> None:
    server = await asyncio.get_running_loop().create_server(ConstantEngine, "127.0.0.1", 0)
    port_file.write_text(str(server.sockets[0].getsockname()[1]))
    await server.serve_forever()


@dataclass(frozen=True)
class Load:
    """One kind of request."""

    name: str
    body_bytes: int
    stream: bool

    def request(self) -> bytes:
        messages = [{"role": "user", "content": "x" * self.body_bytes}]
        asked = {"model": MODEL, "messages": messages} | ({"stream": True} if self.stream else {})
        body = json.dumps(asked, separators=(",", ":")).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        return head.encode() + body


LOADS = (
    Load("1 KB", 1000, stream=False),
    Load("16 KB", 16_000, stream=False),
    Load("256 KB", 256_000, stream=False),
    Load("1 KB, 50 events", 1000, stream=True),
)


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> None:
    writer.write(request)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if not head.startswith(b"http/1.1 200"):
        raise SystemExit(f"unexpected answer: {head.decode()}")
    if b"transfer-encoding: chunked" in head:
        await reader.readuntil(b"\r\n0\r\n\r\n")
    else:
        await reader.readexactly(int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0]))


async def connection(port: int, request: bytes, until: float, times: list[float]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
    while (asked := time.perf_counter()) < until:
        await ask(reader, writer, request)
        times.append(time.perf_counter() - asked)
    writer.close()


async def measure(port: int, load: Load, connections: int, seconds: float) -> list[float]:
    """Every request's seconds."""
    times: list[float] = []
    until = time.perf_counter() + seconds
    await asyncio.gather(*(connection(port, load.request(), until, times) for _ in range(connections)))
    return times


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


async def wait_for(path: Path, process: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + 30
    while not path.exists() or not path.read_text():
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"{process.args!r} did not start")
        await asyncio.sleep(0.05)
    return path.read_text()


@dataclass(frozen=True)
class Gateway:
    """A running gateway."""

    wire: str
    port: int
    pid: int


@asynccontextmanager
async def engine() -> AsyncIterator[int]:
    """The port of a constant engine in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        port_file = Path(folder, "engine")
        process = subprocess.Popen([sys.executable, __file__, "--engine", str(port_file)])
        try:
            yield int(await wait_for(port_file, process))
        finally:
            stop(process)


@asynccontextmanager
async def gateway(wire: str, engine_port: int, programs: Path | None = None) -> AsyncIterator[Gateway]:
    """`kinference serve` in front of an engine, of these programs or else of those beside this interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        ports_file = Path(folder, "ports.json")
        listen = {f"KINFERENCE_LISTEN_{plane}": "127.0.0.1:0" for plane in ("PICKER", "GATEWAY", "ADMIN")}
        command: list[str | Path] = [
            (programs or Path(sys.executable).parent) / "kinference",
            "serve",
            "--wire",
            wire,
            "--log-level",
            "warning",
        ]
        command += ["--ports-file", ports_file, "--engine", f"http://127.0.0.1:{engine_port}"]
        process = subprocess.Popen(command, env=os.environ | listen, stdout=subprocess.DEVNULL)
        try:
            yield Gateway(wire, json.loads(await wait_for(ports_file, process))["gateway"], process.pid)
        finally:
            stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=30)


def quantile(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(share * len(times)))]


COLUMNS = ("added p50 ms", "added p99 ms", "req/CPU-s at 64", "req/s at 64")


async def one_round(engine_port: int, gateway: Gateway, load: Load, seconds: float) -> tuple[float, ...]:
    """One figure for each column."""
    direct = await measure(engine_port, load, 1, seconds)
    through = await measure(gateway.port, load, 1, seconds)
    added = [(quantile(through, share) - quantile(direct, share)) * 1e3 for share in (0.5, 0.99)]
    before = cpu_seconds(gateway.pid)
    many = await measure(gateway.port, load, 64, seconds)
    return *added, len(many) / (cpu_seconds(gateway.pid) - before), len(many) / seconds


async def compare(wires: list[str], rounds: int, seconds: float) -> None:
    async with AsyncExitStack() as stack:
        engine_port = await stack.enter_async_context(engine())
        gateways = [await stack.enter_async_context(gateway(wire, engine_port)) for wire in wires]
        for port in (engine_port, *(gateway.port for gateway in gateways)):
            await measure(port, LOADS[0], 8, 1.0)
        print(f"{'request':>16} {'wire':>8} " + " ".join(f"{column:>16}" for column in COLUMNS))
        for load in LOADS:
            figures: dict[str, list[tuple[float, ...]]] = {wire: [] for wire in wires}
            for _ in range(rounds):
                for one in gateways:
                    figures[one.wire].append(await one_round(engine_port, one, load, seconds))
            for wire, rows in figures.items():
                p50, p99, per_cpu, rate = (statistics.median(column) for column in zip(*rows, strict=True))
                print(f"{load.name:>16} {wire:>8} {p50:>16.3f} {p99:>16.3f} {per_cpu:>16,.0f} {rate:>16,.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each load; medians are printed")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of one measurement")
    parser.add_argument("--wire", nargs="+", choices=("own", "grpcio"), default=["grpcio"], help="carriers to compare")
    parser.add_argument("--engine", metavar="PORT_FILE", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.engine:
        uvloop.run(serve_constants(Path(args.engine)))
    else:
        uvloop.run(compare(args.wire, args.rounds, args.seconds))


if __name__ == "__main__":
    main()
