"""Where the names of destinations lead."""

import asyncio
import socket
from collections.abc import Sequence
from ipaddress import ip_address


class Names:
    """Asks the system, each time anew, so that a name that leads elsewhere is followed.

    All who ask for one name at one time share one lookup. The system looks few up at once, and goes on with what nobody
    waits for any more: asked each time, one name whose server is silent would soon hold up the lookups of all others.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._asked: dict[str, asyncio.Task[Sequence[str]]] = {}
        self._reached: dict[str, str] = {}

    async def addresses(self, name: str) -> Sequence[str]:
        """At least one, the one that was reached last before the others. Raises socket.gaierror."""
        if _is_address(name):
            return (name,)
        asked = self._asked.get(name)
        if asked is None:
            asked = self._asked[name] = self._loop.create_task(self._look_up(name))
            asked.add_done_callback(lambda done: self._answered(name, done))
        found = await asyncio.shield(asked)
        return sorted(found, key=lambda address: address != self._reached.get(name))

    def reached(self, name: str, address: str) -> None:
        """A connection was made there."""
        if name != address:
            self._reached[name] = address

    def close(self) -> None:
        """Wait for no answer any more."""
        for asked in tuple(self._asked.values()):
            asked.cancel()

    async def _look_up(self, name: str) -> Sequence[str]:
        found = await self._loop.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        return tuple(dict.fromkeys(str(each[4][0]) for each in found))

    def _answered(self, name: str, done: asyncio.Task[Sequence[str]]) -> None:
        del self._asked[name]
        if not done.cancelled():
            done.exception()  # seen, though nobody may wait for it any more


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
