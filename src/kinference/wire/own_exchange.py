"""One request and its answer on a connection of ours: what holds for them whichever version of HTTP carries them.

Nothing here waits: what a handler has to wait for is in `waits`.
"""

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Protocol

from kinference.errors import ClientGone
from kinference.ids import Seconds
from kinference.ports import Headers
from kinference.wire.fields import Table, header
from kinference.wire.http1.answers import has_body
from kinference.wire.over import OVER
from kinference.wire.waits import body_of, caught_up


class Head(Protocol):
    """Of a request, what both versions tell."""

    @property
    def method(self) -> str: ...
    @property
    def headers(self) -> Headers: ...


class OwnExchange:
    """An `Exchange`. What its connection tells it and how it sends is each version's own."""

    is_started = False
    is_over = False
    """Whether the answer was finished or broken off, after which nobody cancels the handler."""
    is_received = False
    """Whether the request has come in to its end."""
    _is_lost = False
    _is_cut = False
    """Whether the rest of the request can never come."""

    def __init__(self, head: Head, path: str, query: str, peer: str, accepted_at: Seconds) -> None:
        self.method, self.path, self.query, self.headers = head.method, path, query, head.headers
        self.peer, self.accepted_at = peer, accepted_at
        self._pieces: list[bytes] = []
        self._arrival: asyncio.Future[None] | None = None
        self._owed: int | None = None
        self._has_body = True

    @property
    @abstractmethod
    def peer_names(self) -> Sequence[str]:
        """The names in the client's certificate."""

    @property
    def is_gone(self) -> bool:
        """Whether nobody is there any more to take the answer."""
        return self._is_lost

    def lose(self) -> None:
        """The client took its request back, or its connection is gone."""
        self._is_lost = True
        self.break_body()

    def break_body(self) -> None:
        """The rest of the body cannot be read, or will not come."""
        self._is_cut = True
        wake(self._arrival)

    # --- the request's body ----------------------------------------------------------------------

    def arrived(self) -> bytes | None:
        """The whole body, where all of it is here."""
        if not self.is_received:
            return None
        pieces = self._take() if self._pieces else ()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def body(self) -> AsyncIterator[bytes]:
        """The request body as it arrives. Raises ClientGone when it breaks off."""
        self._ask_for_body()
        return body_of(self)

    def came(self) -> Sequence[bytes] | None:
        """What has come since the last time; None at the end. Raises ClientGone when it breaks off."""
        if self._pieces:
            return self._take()
        if self.is_received:
            return None
        if self.is_over or self._is_cut:
            raise ClientGone("the request's body broke off")
        return ()

    def arrival(self) -> asyncio.Future[None]:
        """Comes to its end as more of the body does, or its end."""
        self._arrival = arrival = asyncio.get_running_loop().create_future()
        self._expect()
        return arrival

    @property
    def is_waiting(self) -> bool:
        """Whether the handler waits for more of the body."""
        return self._arrival is not None and not self._arrival.done()

    def _expect(self) -> None:
        """The handler begins to wait for more of the body: nothing may hold it up."""

    def _ask_for_body(self) -> None:
        """Send the interim answer that a client with `expect: 100-continue` waits for."""
        if self.is_received or self.is_started or self._pieces or self._is_lost:
            return
        if (header(self.headers, b"expect") or b"").lower() == b"100-continue":
            self._send_continue()

    def receive(self, piece: bytes) -> None:
        """Part of the body has come."""
        self._pieces.append(piece)
        if self._arrival is not None:
            wake(self._arrival)

    def end_body(self) -> None:
        """The request is complete."""
        self.is_received = True
        if self._arrival is not None:
            wake(self._arrival)

    @abstractmethod
    def _take(self) -> Sequence[bytes]:
        """Hand over what has come, and let more come."""

    @abstractmethod
    def _send_continue(self) -> None:
        """Ask for the body."""

    # --- the answer ------------------------------------------------------------------------------

    @abstractmethod
    def start(self, status: int, headers: Headers) -> Awaitable[None]:
        """Send the head."""

    @abstractmethod
    def send(self, chunk: bytes) -> bool:
        """Send body bytes. Returns whether the client keeps up."""

    @abstractmethod
    def catching_up(self) -> Awaitable[None]:
        """Wait until it has caught up, or is gone."""

    def check_there(self) -> None:
        """Raise ClientGone if it is gone."""
        if self._is_lost:
            raise gone()

    def drained(self) -> Awaitable[None]:
        """Wait until it has caught up. Raises ClientGone."""
        return caught_up(self)

    def write(self, chunk: bytes) -> Awaitable[None]:
        """Send body bytes, and wait while the client reads slower than we write."""
        return OVER if self.send(chunk) else self.drained()

    @abstractmethod
    def _send_end(self) -> None:
        """The answer is complete."""

    @abstractmethod
    def _send_reset(self) -> None:
        """The answer never will be."""

    def _promise(self, status: int, told: Table) -> bool:
        """Begin an answer: what its body will be by these fields. Returns whether its length is told."""
        assert not self.is_started, "the head has gone already"
        self.check_there()
        length = told.get(b"content-length")
        self._has_body = has_body(self.method, status)
        self._owed = None if length is None else int(length)
        return length is not None

    def _counts(self, chunk: bytes) -> bool:
        """Count bytes of the body. Returns whether they are to be sent."""
        assert self.is_started, "the head goes first"
        if self.is_over:
            raise ClientGone("the answer was broken off")
        if self._is_lost:
            raise gone()
        if not chunk or not self._has_body:
            return False
        if self._owed is not None:
            self._owed -= len(chunk)
            assert self._owed >= 0, "more bytes than content-length promised"
        return True

    def finish(self) -> Awaitable[None]:
        """End the answer cleanly."""
        assert self.is_started, "the head goes first"
        if not self.is_over:
            assert not self._owed or not self._has_body, "fewer bytes than content-length promised"
            self.check_there()
            self.is_over = True
            self._send_end()
        return OVER

    def abort(self) -> None:
        """Break the answer off, so that nobody takes what came of it for all."""
        if not self.is_over:
            self.is_over = True
            self._send_reset()

    def give_up(self, status: int) -> None:
        """Answer with a bare status where the head has not gone and somebody listens, else break off."""
        if self.is_over or self._is_lost:
            return
        if self.is_started:
            self.abort()
            return
        self.start(status, ((b"content-length", b"0"),))
        self.finish()


def gone() -> ClientGone:
    """What a handler meets that answers nobody."""
    return ClientGone("the client took its request back, or closed its connection")


def wake(waiting: asyncio.Future[None] | None) -> None:
    """Let who waits go on, if somebody does."""
    if waiting is not None and not waiting.done():
        waiting.set_result(None)
