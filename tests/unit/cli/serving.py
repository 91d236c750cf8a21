"""A real kinference in a thread, for verbs that talk to one."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from kinference.config.schema import Config, Control, Listen
from kinference.config.values import HostPort, StoreUrl
from kinference.runtime.service import running

ANY = HostPort("127.0.0.1", 0)


@contextmanager
def admin_port(folder: Path) -> Iterator[str]:
    """The URL of its admin port; its store is in the folder."""
    config = Config(listen=Listen(ANY, ANY, ANY), control=Control(StoreUrl(f"sqlite:///{folder}/control.db")))
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
