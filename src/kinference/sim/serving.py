"""Brings a simulated engine up on its ports, and takes it down again."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from kinference.ids import Seconds
from kinference.ports import Clock
from kinference.sim.engine import Engine
from kinference.sim.kv_events import KvEventPublisher
from kinference.sim.options import EngineOptions
from kinference.wire.aiohttp_server import AiohttpServer


@dataclass(frozen=True, slots=True)
class RunningEngine:
    """An engine that listens."""

    engine: Engine
    port: int
    kv_events_endpoint: str = ""
    kv_replay_endpoint: str = ""

    @property
    def url(self) -> str:
        host = self.engine.options.host
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


class _SystemClock:
    def now(self) -> Seconds:
        return time.monotonic()

    def wall(self) -> Seconds:
        return time.time()


@asynccontextmanager
async def serve_engine(options: EngineOptions, clock: Clock | None = None) -> AsyncIterator[RunningEngine]:
    """Run an engine for as long as the block lasts. Raises OSError when a port or an endpoint is taken."""
    clock = clock or _SystemClock()
    engine = Engine(options, clock)
    publisher = KvEventPublisher(options.kv_events)
    server = AiohttpServer(engine.handle, clock)
    try:
        publisher.open()
        if publisher.is_open:
            engine.publish_to(publisher)
        port = await server.start(options.host, options.port)
        async with asyncio.TaskGroup() as tasks:
            work = (tasks.create_task(engine.runner.drive()), tasks.create_task(publisher.serve_replay()))
            try:
                yield RunningEngine(engine, port, publisher.endpoint, publisher.replay_endpoint)
            finally:
                for task in work:
                    task.cancel()
    except BaseExceptionGroup as group:
        if len(group.exceptions) > 1:
            raise
        raise group.exceptions[0] from None  # what the caller's block raised, as it was
    finally:
        await server.close()
        publisher.close()
