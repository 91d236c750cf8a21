"""Signals as things that can be waited for."""

import asyncio
import signal
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import contextmanager

STOPPING = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def requested(*signals: signal.Signals) -> Iterator[asyncio.Event]:
    """While inside, these signals set the event instead of ending the process; afterwards they end it again."""
    loop, event = asyncio.get_running_loop(), asyncio.Event()
    for number in signals:
        loop.add_signal_handler(number, event.set)
    try:
        yield event
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


@contextmanager
def deadly(*signals: signal.Signals) -> Iterator[None]:
    """While inside, these signals end the process at once. Unwound by Python's own SIGINT, it would crash in gRPC."""
    with _handled(signal.SIG_DFL, signals):
        yield


@contextmanager
def ignored(*signals: signal.Signals) -> Iterator[None]:
    """While inside, and nothing else is made of them there, these signals do nothing."""
    with _handled(signal.SIG_IGN, signals):
        yield


@contextmanager
def _handled(handler: signal.Handlers, signals: Iterable[signal.Signals]) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in signals}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


async def each(event: asyncio.Event) -> AsyncGenerator[None]:
    """One item each time the event is set; several times before the consumer is back count as one."""
    while True:
        await event.wait()
        event.clear()
        yield
