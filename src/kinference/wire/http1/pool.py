"""The connections to destinations: those that a request is under way on, and those kept between requests, by origin."""

from collections.abc import Iterable
from typing import Final

from kinference.ids import Seconds
from kinference.wire.http1.link import Link

IDLE_MAX: Final[Seconds] = 4.0
"""Below the 5 s after which common engines close an idle connection: reusing one as it closes costs a retry."""


class Pool:
    """What is open. Of what is idle the one used last is reused first, so that those too many grow old and go."""

    def __init__(self) -> None:
        self._idle: dict[str, dict[Link, None]] = {}
        """In the order of their coming; of no origin where none is idle."""
        self._in_use: set[Link] = set()

    def __len__(self) -> int:
        """How many are idle."""
        return sum(map(len, self._idle.values()))

    @property
    def origins(self) -> Iterable[str]:
        """Those of which one is idle."""
        return self._idle

    def take(self, origin: str) -> Link | None:
        """An open connection, to be used; None when there is none."""
        idle = self._idle.get(origin)
        while idle:
            link, _ = idle.popitem()
            if link.is_open:
                self._in_use.add(link)
                return link
        self._idle.pop(origin, None)
        return None

    def use(self, link: Link) -> None:
        """One more that is new."""
        self._in_use.add(link)

    def give(self, link: Link) -> None:
        """Take a connection back, if it can be used again."""
        self._in_use.discard(link)
        if link.keep(IDLE_MAX, self._forget):
            idle = self._idle.get(link.origin)
            if idle is None:
                idle = self._idle[link.origin] = {}
            idle[link] = None

    def drop(self, link: Link) -> None:
        """Nobody waits any more for what it is to bring."""
        self._in_use.discard(link)
        link.close()

    def close(self) -> None:
        """Close all."""
        for links in self._idle.values():
            for link in links:
                link.close()
        self._idle.clear()
        for link in tuple(self._in_use):
            link.close()

    def _forget(self, link: Link) -> None:
        """It has closed: of engines that come and go none is to leave anything here."""
        idle = self._idle.get(link.origin, {})
        idle.pop(link, None)
        if not idle:
            self._idle.pop(link.origin, None)
