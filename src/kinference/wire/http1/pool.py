"""Connections kept between requests, by origin."""

from typing import Final

from kinference.ids import Seconds
from kinference.wire.http1.link import Link

IDLE_MAX: Final[Seconds] = 4.0
"""Below the 5 s after which common engines close an idle connection: reusing one as it closes costs a retry."""


class Pool:
    """What is idle. The one used last is reused first, so that those too many grow old and go."""

    def __init__(self) -> None:
        self._idle: dict[str, list[Link]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._idle.values()))

    def take(self, origin: str) -> Link | None:
        """An open connection; None when there is none."""
        idle = self._idle.get(origin)
        while idle:
            link = idle.pop()
            if link.is_open:
                return link
        self._idle.pop(origin, None)
        return None

    def give(self, link: Link) -> None:
        """Take a connection back, if it can be used again."""
        if link.keep(IDLE_MAX):
            self._idle.setdefault(link.origin, []).append(link)

    def close(self) -> None:
        """Close what is idle."""
        for links in self._idle.values():
            for link in links:
                link.close()
        self._idle.clear()
