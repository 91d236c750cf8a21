"""The end of a request whose destination's connection takes a while to end."""

from collections.abc import Awaitable, Callable


async def closed(closing: Awaitable[None], then: Callable[[], None]) -> None:
    """Wait for it, and do what is left to be done however it ended."""
    try:
        await closing
    finally:
        then()
