"""A real kinference in a thread, for verbs that talk to one."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from kinference.config.destinations import Endpoint, Pool
from kinference.config.schema import Config, Control, Listen
from kinference.config.values import HostPort, Name, StoreUrl, Url
from kinference.runtime.service import running

ANY = HostPort("127.0.0.1", 0)


def pool(name: str, *ports: int) -> Pool:
    """A pool that serves `m` at these ports of this machine."""
    endpoints = tuple(Endpoint(Url("http", "127.0.0.1", port)) for port in ports)
    return Pool(Name(name), endpoints, models=("m",))


@contextmanager
def admin_port(folder: Path, pools: tuple[Pool, ...] = ()) -> Iterator[str]:
    """The URL of its admin port; its store is in the folder."""
    control = Control(StoreUrl(f"sqlite:///{folder}/control.db"))
    config = Config(listen=Listen(ANY, ANY, ANY), pools=pools, control=control)
    ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, int]] = Future()

    async def serve() -> None:
        async with running(config) as service:
            stop = asyncio.Event()
            ready.set_result((asyncio.get_running_loop(), stop, service.ports.admin))
            await stop.wait()

    thread = Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    loop, stop, port = ready.result(timeout=30)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
