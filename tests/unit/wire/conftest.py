"""Whatever waits, on both event loops."""

import asyncio
from collections.abc import Callable

import uvloop


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Both loops: their transports differ in more than speed."""
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
