"""One connection to a destination: a request out, its answer in, and how it failed if it did."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, cast

from kinference.errors import KinferenceError, UpstreamCut, UpstreamTimeout, UpstreamUnreachable
from kinference.ids import Seconds
from kinference.wire.http1.deadlines import NEVER, Deadlines
from kinference.wire.http1.replies import NotHttp, ReplyReader
from kinference.wire.own_exchange import wake
from kinference.wire.turn import SMALL, Turn

_UNREAD_MAX: Final = 256 * 1024
"""Bytes of an answer that may wait for whoever reads it before the destination is made to wait."""


class Link(asyncio.Protocol):
    """A connection, kept between requests. Its user asks, waits for the head, takes pieces and waits between them."""

    _transport: asyncio.Transport
    """Told before anything else happens."""
    _gone: "Callable[[Link], object] | None" = None
    """Who keeps it, or has kept it."""

    def __init__(self, origin: str, deadlines: Deadlines, turn: Turn) -> None:
        self.origin = origin
        self._turn = turn
        self._held_at = -1
        """Of the turn's flushes, where the request waits to be written; -1 where it does not."""
        self.reply = ReplyReader()
        self.deadline = NEVER
        self._deadlines = deadlines
        self._failure: KinferenceError | None = None
        self._news: Callable[[], object] | None = None
        """Who waits for more, or for the end."""
        self._take_over: Callable[[bytes], bool] | None = None
        """Gets the body as it comes, as long as it returns that it wants more."""
        self._patience: Seconds = NEVER
        self._is_holding = False
        self._is_closed = False

    # --- the transport's calls -------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's has no such base class
        self._loop = asyncio.get_running_loop()
        self._deadlines.watch(self)

    def data_received(self, data: bytes) -> None:
        if self._held_at == self._turn.flushes:  # an answer to nothing, and so not to what is to be asked
            self._fail(UpstreamUnreachable(f"{self.origin} sent something before it was asked"))
            return
        try:
            self.reply.feed(data)
        except NotHttp:
            why = "broke its answer off" if self.reply.status else "answered with something other than HTTP"
            self._fail(UpstreamCut(f"{self.origin} {why}"))
            return
        if self._take_over is not None:
            pieces = self.reply.pieces
            if pieces:  # all that there are: what came before was handed over
                chunk = pieces[0] if len(pieces) == 1 else b"".join(pieces)
                pieces.clear()
                if not self._take_over(chunk):
                    self._take_over = None
            if self._take_over is not None and not self.reply.is_complete:
                self.deadline = self._loop.time() + self._patience  # later than it was, which the timer need not know
                return
        if self.reply.is_complete:
            if not self.reply.is_reusable and self._news is None:
                self.close()
        elif not self._is_holding and sum(map(len, self.reply.pieces)) > _UNREAD_MAX:
            self._is_holding = True
            self._transport.pause_reading()
        if self.reply.status:
            self._tell()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closed = True
        self._deadlines.forget(self)
        if self._gone is not None:
            self._gone(self)
        was_whole = self.reply.is_complete
        if not self.reply.end() or (exc is not None and not was_whole):  # a reset ends nothing cleanly
            self._fail(self._cut())
        self._tell()

    def _cut(self) -> KinferenceError:
        if not self.reply.has_begun:
            return UpstreamUnreachable(f"{self.origin} closed the connection without an answer")
        if not self.reply.status:
            return UpstreamCut(f"{self.origin} broke off inside the head of its answer")
        return UpstreamCut(f"{self.origin} broke its answer off")

    def expire(self) -> None:
        """Nothing has come for too long, or nobody has needed the connection."""
        if self._news is None:
            self.close()
        elif self.reply.status:
            self._fail(UpstreamTimeout(f"{self.origin} fell silent for {self._patience:g} s mid-answer"))
        else:
            what = "no whole head" if self.reply.has_begun else "nothing"
            self._fail(UpstreamTimeout(f"{self.origin} sent {what} for {self._patience:g} s"))

    # --- its user's calls ------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether a request may go out over it."""
        return not self._is_closed and self.reply.is_reusable and not self._transport.is_closing()

    def ask(self, pieces: Sequence[bytes], *, to_head: bool) -> None:
        """Send a request."""
        self.reply.expect(to_head=to_head)
        turn = self._turn
        if sum(map(len, pieces)) <= SMALL:
            self._held_at = turn.flushes if turn.write(self._transport, b"".join(pieces)) else -1
        else:
            self._held_at = -1
            self._transport.writelines(pieces)

    def take(self) -> bytes:
        """What has come of the body since the last time, b"" for nothing."""
        pieces = self.reply.pieces
        if not pieces:
            return b""
        if self._is_holding and not self._is_closed:
            self._is_holding = False
            self._transport.resume_reading()
        taken = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        return taken

    def more(self, patience: Seconds) -> asyncio.Future[None]:
        """Comes to its end as more does of an answer that is not complete: first its whole head. Whether it failed is
        to be checked then.
        """
        news = self._loop.create_future()
        self.tell(partial(wake, news), patience)
        return news

    def tell(self, news: Callable[[], object], patience: Seconds) -> None:
        """Call back where `more` would come to its end."""
        self._news = news
        if self._failure is None:
            self._patience = patience
            self._deadlines.give(self, patience)
        else:
            self._tell()

    def forget(self) -> None:
        """Call nobody back."""
        self._news = None

    def pour(self, take: Callable[[bytes], bool], patience: Seconds) -> asyncio.Future[None]:
        """Hand over what comes, as it comes, until the answer is complete or `take` returns that it wants no more for
        now: then it comes to its end.
        """
        news = self.more(patience)
        self._take_over = take
        return news

    def follow(self, take: Callable[[bytes], bool], news: Callable[[], object], patience: Seconds) -> None:
        """Hand over what is here and what comes, as it comes, and call back when the answer is complete or has failed.
        Whoever returns that it wants no more has called `stop_pouring` before.
        """
        self._take_over, self._news, self._patience = take, news, patience
        if self.reply.pieces:
            take(self.take())
        if self._take_over is not take:
            return  # it wanted no more
        if self.reply.is_complete or self._failure is not None:
            self._tell()
        else:
            self._deadlines.give(self, patience)

    def stop_pouring(self) -> None:
        """Hand nothing over any more, and call nobody back."""
        self._take_over = self._news = None
        self.deadline = NEVER

    @property
    def has_failed(self) -> bool:
        return self._failure is not None

    def check(self) -> None:
        """Raise UpstreamUnreachable, UpstreamCut or UpstreamTimeout if it failed, and nothing is left to be taken."""
        if self._failure is not None and not self.reply.pieces:
            raise self._failure

    def keep(self, idle: Seconds, gone: "Callable[[Link], object] | None" = None) -> bool:
        """Keep it for the next request; `gone` is told once its connection has ended. False when that cannot be: it is
        closed then.
        """
        reply = self.reply
        sent_all = not self._is_closed and self._transport.get_write_buffer_size() == 0
        if self._is_holding or not (reply.is_complete and sent_all and self.is_open):
            self.close()
            return False
        self._gone = gone
        self._deadlines.give(self, idle)
        return True

    def close(self) -> None:
        """Close it at once; harmless when it is closed."""
        self._is_closed = True
        self._transport.abort()

    def _fail(self, failure: KinferenceError) -> None:
        if self._failure is None:
            self._failure = failure
        self.close()
        self._tell()

    def _tell(self) -> None:
        """Let who waits go on. Who was cancelled meanwhile waits no more."""
        news, self._news, self._take_over = self._news, None, None
        if news is not None:
            self.deadline = NEVER
            news()
