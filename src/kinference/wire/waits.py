"""What a handler waits for on a connection of ours."""

from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Protocol


class Arriving(Protocol):
    """A request whose body comes."""

    def came(self) -> Sequence[bytes] | None:
        """What has come since the last time; None at the end."""
        ...

    def arrival(self) -> Awaitable[None]:
        """More of it."""
        ...


class Leaving(Protocol):
    """An answer on its way to a client."""

    def catching_up(self) -> Awaitable[None]:
        """That the client takes what was sent, or is gone."""
        ...

    def check_there(self) -> None:
        """Raise ClientGone if it is gone."""
        ...


async def body_of(request: Arriving) -> AsyncIterator[bytes]:
    """A body as it arrives."""
    while (pieces := request.came()) is not None:
        for piece in pieces:
            yield piece
        if not pieces:
            await request.arrival()


async def caught_up(answer: Leaving) -> None:
    """Until the client has taken most of what was sent."""
    await answer.catching_up()
    answer.check_there()
