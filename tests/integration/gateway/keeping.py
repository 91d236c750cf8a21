"""An engine that keeps its connections, as those that are in use do."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias

from tests.integration.gateway.harness import Received

SECOND_S = 10.0

Step: TypeAlias = bytes | Callable[["KeepingEngine", asyncio.StreamWriter], Awaitable[None]] | None


class KeepingEngine:
    """Answers the requests of all its connections with the steps of one script: bytes, an end, or what a test says."""

    def __init__(self, *script: Step) -> None:
        self.script = [*script]
        self.heads: list[bytes] = []
        self.connections = 0
        self.asked, self.left, self.go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._serving: set[asyncio.Task[None]] = set()
        self.port = 0

    @asynccontextmanager
    async def listening(self) -> AsyncIterator["KeepingEngine"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            self.go_on.set()
            if self._serving:
                await asyncio.wait(self._serving, timeout=SECOND_S)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        self.connections += 1
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                await reader.readexactly(int(Received(head, b"").field("content-length")[0]))
                self.heads.append(head)
                step = self.script.pop(0)
                if step is None:
                    break
                if isinstance(step, bytes):
                    writer.write(step)
                else:
                    await step(self, writer)
        self.left.set()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
