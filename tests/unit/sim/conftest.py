"""A fake of the HTTP seam, and an engine that runs much faster than life."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import msgspec
import pytest

from kinference.ports import Headers
from kinference.sim.engine import Engine
from kinference.sim.options import EngineOptions

FAST = 10_000.0


class RealClock:
    def now(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()


class FakeExchange:
    """An exchange that remembers what was answered."""

    def __init__(self, method: str, path: str, body: bytes = b"") -> None:
        self.method, self.path, self.query = method, path, ""
        self.headers: Headers = ()
        self.peer, self.accepted_at = "test", 0.0
        self.peer_names: Sequence[str] = ()
        self.sent_body = body
        self.status = 0
        self.answer_headers: dict[bytes, bytes] = {}
        self.chunks: list[bytes] = []
        self.is_finished = self.is_aborted = False

    def arrived(self) -> bytes | None:
        return None

    async def body(self) -> AsyncIterator[bytes]:
        half = len(self.sent_body) // 2
        yield self.sent_body[:half]
        yield self.sent_body[half:]

    async def start(self, status: int, headers: Headers) -> None:
        self.status, self.answer_headers = status, dict(headers)

    def send(self, chunk: bytes) -> bool:
        self.chunks.append(chunk)
        return True

    async def drained(self) -> None: ...

    async def write(self, chunk: bytes) -> None:
        self.send(chunk)

    async def finish(self) -> None:
        self.is_finished = True

    def abort(self) -> None:
        self.is_aborted = True

    @property
    def raw(self) -> bytes:
        return b"".join(self.chunks)

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.raw)

    @property
    def events(self) -> list[Any]:
        """The payloads of a stream, without its end mark."""
        datas = [line[6:] for line in self.raw.split(b"\n") if line.startswith(b"data: ")]
        return [msgspec.json.decode(data) for data in datas if data != b"[DONE]"]


@pytest.fixture
def clock() -> RealClock:
    return RealClock()


@pytest.fixture
async def make_engine(clock: RealClock) -> AsyncIterator[Callable[..., Engine]]:
    """Builds engines from options, and drives them until the test is over."""
    drivers: list[asyncio.Task[None]] = []

    def make(options: EngineOptions | None = None) -> Engine:
        engine = Engine(options or EngineOptions(models=("m", "alias"), speed=FAST, output_tokens=8), clock)
        drivers.append(asyncio.create_task(engine.runner.drive()))
        return engine

    yield make
    for driver in drivers:
        driver.cancel()
    await asyncio.gather(*drivers, return_exceptions=True)


@pytest.fixture
def ask() -> Callable[..., Awaitable[FakeExchange]]:
    """Sends one request to an engine and waits for the whole answer."""

    async def send(engine: Engine, method: str, path: str, body: object = None) -> FakeExchange:
        raw = body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)
        exchange = FakeExchange(method, path, raw)
        await engine.handle(exchange)
        return exchange

    return send
