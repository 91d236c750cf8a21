"""Where the endpoints of a pool are told: the one seam between the fleet and the world that they come and go in."""

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from kinference.fleet.discovery.place import Place


class SourceFailed(Exception):
    """A source cannot tell; the message says why and what to do, and holds no secret."""


class Source(Protocol):
    """One way to find out. What it tells is the whole set each time, also where nothing has changed since."""

    @property
    def name(self) -> str:
        """What people know it by."""
        ...

    def sets(self) -> AsyncGenerator[Sequence[Place], None]:
        """The set as it is, and again whenever it may be another. Raises SourceFailed; called again, it goes on from
        there.
        """
        ...
