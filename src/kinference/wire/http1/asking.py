"""Requests over connections to destinations that are open, and their answers. Nothing here waits: `coming` does."""

from collections.abc import AsyncIterator, Awaitable, Coroutine
from typing import Any

from kinference.errors import UpstreamCut, UpstreamTimeout, UpstreamUnreachable
from kinference.ids import Seconds
from kinference.ports import Follower, Sink, Told, UpstreamRequest
from kinference.wire.http1.asks import pieces_of
from kinference.wire.http1.coming import next_of, poured
from kinference.wire.http1.link import Link
from kinference.wire.http1.pool import Pool
from kinference.wire.over import OVER


class Asking:
    """What is asked over the connections of a pool."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def ask(self, request: UpstreamRequest, told: Told) -> "Http1Asked | None":
        """As `Upstream.ask` has it."""
        pieces, timeouts = pieces_of(request), request.timeouts
        link = self._pool.take(request.origin)
        if link is None:
            return None
        asked = Http1Asked(self._pool, link, timeouts.between_chunks, told)
        try:
            link.ask(pieces, to_head=request.method == "HEAD")
        except BaseException:
            self._pool.drop(link)
            raise
        link.tell(asked.hear, timeouts.first_byte)
        return asked


class Http1Asked:
    """A request on its way, without a task."""

    def __init__(self, pool: Pool, link: Link, patience: Seconds, told: Told) -> None:
        self._pool, self._link, self._patience, self._told = pool, link, patience, told

    def hear(self) -> None:
        """Its head is there, or it failed."""
        link = self._link
        try:
            link.check()
        except UpstreamUnreachable:  # closed at the far end meanwhile; nothing of it was served
            self._pool.drop(link)
            self._told(None)
        except (UpstreamCut, UpstreamTimeout) as error:
            self._pool.drop(link)
            self._told(error)
        else:
            self._told(Http1Answer(self._pool, link, self._patience))

    def drop(self) -> None:
        """As `Asked.drop` has it."""
        self._link.forget()
        self._pool.drop(self._link)


class Http1Answer:
    """An `UpstreamAnswer`."""

    def __init__(self, pool: Pool, link: Link, patience: Seconds) -> None:
        """`patience`: how long it may be silent."""
        self._pool, self.patience = pool, patience
        self._follower: Follower | None = None
        self.link: Link | None = link
        """None once it was closed."""
        reply = link.reply
        self.status, self.headers = reply.status, reply.headers

    @property
    def is_ready(self) -> bool:
        """Whether the next chunk, or the end, is here."""
        link = self.link
        return link is None or link.reply.is_complete or bool(link.reply.pieces)

    def arrived(self) -> bytes | None:
        """The whole body, where all of it is here."""
        link = self.link
        return link.take() if link is not None and link.reply.is_complete else None

    def follow(self, follower: Follower) -> bool:
        """As `UpstreamAnswer.follow` has it."""
        link = self.link
        if link is None:
            return False
        self._follower = follower
        link.follow(follower.take, self._hear, self.patience)
        return True

    def _hear(self) -> None:
        """It has come to its end, whichever."""
        link, follower = self.link, self._follower
        assert link is not None, "a closed one hears nothing"
        assert follower is not None, "somebody follows it"
        if (rest := link.take()) and not follower.take(rest):
            return
        self._follower = None
        follower.ended(is_cut=link.has_failed)

    def leave(self) -> None:
        """Hand nothing more over."""
        self._follower = None
        if self.link is not None:
            self.link.stop_pouring()

    def chunks(self) -> AsyncIterator[bytes]:
        """What comes, as it comes."""
        return self  # no generator: the event loop would enter each into a book of its own

    def __aiter__(self) -> "Http1Answer":
        return self

    def __anext__(self) -> Awaitable[bytes]:
        return next_of(self)

    def pour(self, sink: Sink) -> Coroutine[Any, Any, None]:
        """Give all that `chunks` would to the sink."""
        return poured(self, sink)

    def close(self) -> Awaitable[None]:
        """Give its connection back."""
        link, self.link = self.link, None
        if link is not None:
            self._pool.give(link)
        return OVER
