"""An API of Kubernetes over real sockets: pods of one namespace, listed and watched as its documentation has it.

A stand-in, since no cluster runs here. It can end watches, cut them off, and forget what happened before.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from kinference.runtime.clock import SystemClock
from kinference.wire.aiohttp_server import AiohttpServer
from kinference.wire.exchange import Exchange, respond
from tests.unit.fleet.discovery.kubernetes.cluster_objects import Object, bookmark, event, failure, listed

_JSON = b"application/json"
ENDED, CUT = b"", b"cut"


@dataclass
class ClusterApi:
    """The pods, and whoever watches them."""

    pods: dict[str, Object] = field(default_factory=dict)
    events: list[tuple[int, bytes]] = field(default_factory=list)
    version: int = 100
    oldest: int = 0
    """Watches from before this version are answered 410."""
    watchers: list[asyncio.Queue[bytes]] = field(default_factory=list)
    lists: int = 0
    is_down: bool = False
    origin: str = ""

    def set(self, pod: Object) -> None:
        """Add or change a pod."""
        name = pod["metadata"]["name"]
        kind = "MODIFIED" if name in self.pods else "ADDED"
        self.pods[name] = pod
        self._tell(kind, pod)

    def delete(self, name: str) -> None:
        self._tell("DELETED", self.pods.pop(name))

    def _tell(self, kind: str, pod: Object) -> None:
        self.version += 1
        pod["metadata"]["resourceVersion"] = str(self.version)
        line = event(kind, pod)
        self.events.append((self.version, line))
        for watcher in self.watchers:
            watcher.put_nowait(line)

    def end_watches(self, how: bytes = ENDED) -> None:
        for watcher in self.watchers:
            watcher.put_nowait(how)

    def forget(self) -> None:
        """As a cluster does after some minutes: nothing of before can be told any more."""
        self.version += 1
        self.oldest, self.events = self.version, []
        for watcher in self.watchers:
            watcher.put_nowait(failure(410))
            watcher.put_nowait(ENDED)

    async def handle(self, exchange: Exchange) -> None:
        query = {name: values[0] for name, values in parse_qs(exchange.query).items()}
        if self.is_down:
            await respond(exchange, 503, b"{}", _JSON)
        elif exchange.path != "/api/v1/namespaces/models/pods" or query.get("labelSelector") != "app=vllm":
            await respond(exchange, 403, b"{}", _JSON)
        elif "watch" not in query:
            self.lists += 1
            await respond(exchange, 200, listed(*self.pods.values(), version=str(self.version)), _JSON)
        elif int(query["resourceVersion"]) < self.oldest:
            await respond(exchange, 410, json.dumps({"kind": "Status", "code": 410}).encode(), _JSON)
        else:
            await self._watch(exchange, int(query["resourceVersion"]))

    async def _watch(self, exchange: Exchange, since: int) -> None:
        told = asyncio.Queue[bytes]()
        for version, line in self.events:
            if version > since:
                told.put_nowait(line)
        told.put_nowait(bookmark(str(self.version)))
        self.watchers.append(told)
        try:
            await exchange.start(200, ((b"content-type", _JSON),))
            while (line := await told.get()) not in (ENDED, CUT):
                await exchange.write(line)
            if line == CUT:
                await exchange.write(b'{"type": "ADDED", "obj')
                exchange.abort()
            else:
                await exchange.finish()
        finally:
            self.watchers.remove(told)


@asynccontextmanager
async def cluster_api(api: ClusterApi) -> AsyncIterator[ClusterApi]:
    server = AiohttpServer(api.handle, SystemClock())
    port = await server.start("127.0.0.1", 0)
    api.origin = f"http://127.0.0.1:{port}"
    try:
        yield api
    finally:
        api.end_watches()
        await server.close()
