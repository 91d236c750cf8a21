"""The HTTP carriers under test and how a test asks for one."""

import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from kinference.ports import Clock, Upstream
from kinference.wire.exchange import Handler
from kinference.wire.server_options import HttpServerOptions


class RealClock:
    def now(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()


class HttpServer(Protocol):
    async def start(self, host: str, port: int) -> int: ...
    async def drain(self, timeout: float) -> None: ...
    async def close(self) -> None: ...


class MakeServer(Protocol):
    def __call__(self, handler: Handler, clock: Clock, options: HttpServerOptions | None = None) -> HttpServer: ...


MakeUpstream: TypeAlias = Callable[[], AbstractAsyncContextManager[Upstream]]


class Serving(Protocol):
    """Serve with a handler for the length of a block, which is given the port."""

    def __call__(
        self, handler: Handler, options: HttpServerOptions | None = None
    ) -> AbstractAsyncContextManager[int]: ...


@dataclass(frozen=True)
class Carrier:
    server: MakeServer
    upstream: MakeUpstream
