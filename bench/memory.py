"""What a stream costs in memory, idle and with events, and whether memory stays flat under a mixed load for long.

    .venv/bin/python bench/memory.py --streams 10000            # gateway streams over HTTP/1.1 and HTTP/2, open pushes
    .venv/bin/python bench/memory.py --soak-minutes 12          # every 30 s the resident memory of the process

A stream is a chat completion whose head and first event have come and whose end has not. The engine and the clients are
this process; what is measured is `kinference serve`, from /proc.
"""

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType

import uvloop
from h2.config import H2Configuration
from h2.connection import H2Connection

STREAMS_A_CONNECTION = 1000
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
WHOLE = {
    "id": "1",
    "object": "chat.completion",
    "model": "bench",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}],
}
MODELS = {"object": "list", "data": [{"id": "bench", "object": "model"}]}


def event(text: str) -> bytes:
    data = {
        "id": "1",
        "object": "chat.completion.chunk",
        "model": "bench",
        "choices": [{"index": 0, "delta": {"content": text}}],
    }
    line = b"data: " + json.dumps(data, separators=(",", ":")).encode() + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(line), line)


EVENT, LAST = event("word "), b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"


class HoldingEngine:
    """Answers whole at once; begins streams, and goes on with them when told."""

    def __init__(self) -> None:
        self.streams: set[asyncio.StreamWriter] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0] or 0)
                body = await reader.readexactly(length)
                if b'"hold"' in body:
                    writer.write(HEAD + EVENT)
                    self.streams.add(writer)
                elif b'"stream":true' in body:
                    writer.write(HEAD + EVENT * 50 + LAST)
                else:
                    answer = json.dumps(MODELS if head.startswith(b"get /v1/models") else WHOLE).encode()
                    writer.write(
                        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(answer)
                        + answer
                    )
        except (asyncio.IncompleteReadError, ConnectionError):
            self.streams.discard(writer)
            writer.close()

    async def wait_for(self, count: int) -> None:
        """Until so many streams have begun: this process is both ends, and must not starve the one by the other."""
        while len(self.streams) < count:
            await asyncio.sleep(0.005)

    def go_on(self) -> None:
        """An event on every stream."""
        for writer in self.streams:
            writer.write(EVENT)


def chat(text: str, *, stream: bool) -> bytes:
    asked = {"model": "bench", "stream": stream, "messages": [{"role": "user", "content": text}]}
    return json.dumps(asked, separators=(",", ":")).encode()


def request(body: bytes) -> bytes:
    return (
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        % len(body)
        + body
    )


def resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


@asynccontextmanager
async def router(
    engine_port: int, more: Mapping[str, str] = MappingProxyType({})
) -> AsyncIterator[tuple[int, dict[str, int]]]:
    """`kinference serve`: its process and ports. `more` are variables of its environment."""
    with tempfile.TemporaryDirectory() as folder:
        ports = Path(folder, "ports.json")
        listen = {f"KINFERENCE_LISTEN_{plane}": "127.0.0.1:0" for plane in ("PICKER", "GATEWAY", "ADMIN")}
        command = [str(Path(sys.executable).with_name("kinference")), "serve", "--log-level", "warning"]
        command += ["--ports-file", str(ports), "--engine", f"http://127.0.0.1:{engine_port}"]
        process = subprocess.Popen(command, env={**os.environ, **listen, **more}, stdout=subprocess.DEVNULL)
        try:
            while not ports.exists() or not ports.read_text():
                await asyncio.sleep(0.1)
            await asyncio.sleep(2)  # until it has found the engine's model
            yield process.pid, json.loads(ports.read_text())
        finally:
            process.kill()
            process.wait()


# --- streams -------------------------------------------------------------------------------------


async def over_http1(port: int, count: int) -> list[asyncio.StreamWriter]:
    """So many streams, a connection each."""

    async def begin(number: int) -> asyncio.StreamWriter:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request(chat(f"hold {number}", stream=True).replace(b'"stream"', b'"user":"hold","stream"')))
        head = await reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in head, head
        await reader.readuntil(b"word")
        taking.append(asyncio.ensure_future(drained(reader)))
        return writer

    taking: list[asyncio.Future[None]] = []
    writers = []
    for first in range(0, count, 100):
        writers += await asyncio.gather(*(begin(number) for number in range(first, min(count, first + 100))))
    return writers


async def drained(reader: asyncio.StreamReader) -> None:
    while await reader.read(65_536):
        pass


async def over_http2(
    port: int,
    count: int,
    path: str,
    fields: list[tuple[str, str]],
    body: Callable[[int], bytes],
    *,
    ends: bool,
    held: Callable[[int], Awaitable[None]],
) -> list[asyncio.StreamWriter]:
    """So many streams, a thousand on a connection."""
    writers = []
    for first in range(0, count, STREAMS_A_CONNECTION):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        h2 = H2Connection(H2Configuration(client_side=True))
        h2.initiate_connection()
        h2.increment_flow_control_window(2**30)
        writer.write(h2.data_to_send())
        h2.receive_data(await reader.read(65_536))
        head = [(":method", "POST"), (":scheme", "http"), (":authority", "h"), (":path", path), *fields]
        for number in range(first, min(count, first + STREAMS_A_CONNECTION)):
            stream_id = h2.get_next_available_stream_id()
            h2.send_headers(stream_id, head)
            h2.send_data(stream_id, body(number), end_stream=ends)
            writer.write(h2.data_to_send())
            if number % 50 == 49:
                await writer.drain()
                await held(number + 1)
        asyncio.ensure_future(drained(reader)).add_done_callback(lambda done: done.cancelled() or done.exception())
        writers.append(writer)
    return writers


async def told(name: str, pid: int, before: float, count: int) -> None:
    now = resident_mb(pid)
    print(
        f"{name:>28}: {count:,} streams, {now:.0f} MB of which {now - before:.0f} for them: {(now - before) * 1024 / count:.1f} KB each",
        flush=True,
    )


async def streams(count: int) -> None:
    """Each kind in a process of its own, so that none finds what another left."""
    holding = HoldingEngine()
    server = await asyncio.start_server(holding.serve, "127.0.0.1", 0, backlog=1024)
    engine_port = server.sockets[0].getsockname()[1]
    json_fields = [("content-type", "application/json")]
    hold = lambda number: chat(f"hold {number}", stream=True).replace(b'"stream"', b'"user":"hold","stream"')  # noqa: E731 - a name is all it needs
    everything = count
    for name in ("HTTP/2", "HTTP/1.1"):
        # A stream over HTTP/1.1 is a connection, and one peer may have 4,096.
        count = everything if name == "HTTP/2" else min(everything, 4000)
        async with router(engine_port) as (pid, ports):
            before = resident_mb(pid)
            if name == "HTTP/1.1":
                writers = await over_http1(ports["gateway"], count)
            else:
                writers = await over_http2(
                    ports["gateway"], count, "/v1/chat/completions", json_fields, hold, ends=True, held=holding.wait_for
                )
            async with asyncio.timeout(300):
                while len(holding.streams) < count:
                    await asyncio.sleep(0.2)
            await asyncio.sleep(1)
            await told(f"gateway, {name}, idle", pid, before, count)
            for _ in range(20):
                holding.go_on()
                await asyncio.sleep(1)
            await told(f"gateway, {name}, active", pid, before, count)
            for writer in writers:
                writer.close()
            await asyncio.sleep(3)
            await told(f"gateway, {name}, ended", pid, before, count)
        holding.streams.clear()
    count = everything
    async with router(engine_port) as (pid, ports):
        before = resident_mb(pid)
        grpc = [("te", "trailers"), ("content-type", "application/grpc")]
        first = b"\0\0\0\x04\x02\x0a" + bytes([0x80, 0x08]) + b"x" * 1024
        await over_http2(
            ports["picker"],
            count,
            "/kinference.v1.Picker/PushBody",
            grpc,
            lambda _: first[:1] + (len(first) - 5).to_bytes(4) + first[5:],
            ends=False,
            held=lambda _: asyncio.sleep(0),
        )
        await asyncio.sleep(3)
        await told("picker, push of 1 KB, open", pid, before, count)
    server.close()


# --- a long run ----------------------------------------------------------------------------------


async def soak(minutes: float) -> None:
    """Requests of every size and streams, some broken off, from 32 connections; memory every half minute.

    The prompts come round again: the prefix index, which is bounded by configuration, is full after the first of them.
    """
    holding = HoldingEngine()
    server = await asyncio.start_server(holding.serve, "127.0.0.1", 0, backlog=1024)
    async with router(server.sockets[0].getsockname()[1]) as (pid, ports):
        ends = time.monotonic() + 60 * minutes
        counts = {"requests": 0}
        load = [asyncio.ensure_future(one_client(ports["gateway"], number, ends, counts)) for number in range(32)]
        while (left := ends - time.monotonic()) > 0:
            await asyncio.sleep(min(30, left))
            print(
                f"{minutes * 60 - max(left - 30, 0):>6.0f} s {resident_mb(pid):>7.1f} MB {counts['requests']:>9,} requests",
                flush=True,
            )
        await asyncio.gather(*load)
    server.close()


async def one_client(port: int, number: int, ends: float, counts: dict[str, int]) -> None:
    sizes = (200, 1_000, 16_000, 64_000, 256_000)
    turn = 0
    while time.monotonic() < ends:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
        for _ in range(50):
            turn += 1
            counts["requests"] += 1
            stream = turn % 3 == 0
            text = f"{number} {turn % 60} " + "word " * (sizes[(turn + number) % len(sizes)] // 5)
            writer.write(request(chat(text, stream=stream)))
            if turn % 17 == 0:
                break  # in the middle
            head = await reader.readuntil(b"\r\n\r\n")
            if b"chunked" in head.lower():
                await reader.readuntil(b"0\r\n\r\n")
            else:
                await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]))
            await asyncio.sleep(0.02)
        writer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--soak-minutes", type=float, default=0)
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    uvloop.run(soak(options.soak_minutes) if options.soak_minutes else streams(options.streams))


if __name__ == "__main__":
    main()
