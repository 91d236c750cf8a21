"""The seam of the HTTP servers: what a handler sees of one request, whichever carrier brought it."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence
from typing import Protocol, TypeAlias

from kinference.ids import Seconds
from kinference.ports import Headers


class Exchange(Protocol):
    """One HTTP request and its answer.

    The handler's task is cancelled when the client vanishes before the answer is complete: whatever the handler must
    still do then (close the upstream, report) belongs in `finally`.
    """

    @property
    def method(self) -> str: ...
    @property
    def path(self) -> str:
        """The path as sent, still percent-encoded, without the query."""
        ...

    @property
    def query(self) -> str:
        """What follows the first `?`, "" when there is none."""
        ...

    @property
    def headers(self) -> Headers: ...
    @property
    def peer(self) -> str:
        """The client's address, for logs."""
        ...

    @property
    def peer_names(self) -> Sequence[str]:
        """The names in the client's certificate, where it was asked for one."""
        ...

    @property
    def accepted_at(self) -> float:
        """Monotonic seconds at which the request's first byte was taken."""
        ...

    def arrived(self) -> bytes | None:
        """The whole body, where all of it is here: asked for until it gives it. None while some is on its way: `body`
        waits for it.
        """
        ...

    def body(self) -> AsyncIterator[bytes]:
        """The request body as it arrives, unbounded: the handler counts. Raises ClientGone when it breaks off."""
        ...

    def start(self, status: int, headers: Headers) -> Awaitable[None]:
        """Send the head. Framing (`content-length` if given, else chunked) and `date` are the carrier's."""
        ...

    def send(self, chunk: bytes) -> bool:
        """Send body bytes at once. Returns whether the client keeps up: if not, wait until it has `drained` them.
        Raises ClientGone.
        """
        ...

    def drained(self) -> Awaitable[None]:
        """Wait until the client has taken most of what was sent. Raises ClientGone."""
        ...

    def write(self, chunk: bytes) -> Awaitable[None]:
        """Send body bytes at once; wait while the client reads slower than we write. Raises ClientGone."""
        ...

    def finish(self) -> Awaitable[None]:
        """End the answer cleanly."""
        ...

    def abort(self) -> None:
        """Break the connection off, so that the client cannot take what it got for a complete answer."""
        ...


class HttpServer(Protocol):
    """A listening port. Made from a handler."""

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the bound port, which matters for port 0. Raises OSError when the port is taken."""
        ...

    async def drain(self, timeout: Seconds) -> None:
        """Take nothing new, let what is in flight finish for so long, then close."""
        ...

    async def close(self) -> None:
        """Stop listening, cancel the handlers in flight, close every connection."""
        ...


class Work(Protocol):
    """A request under way, to the course that it takes."""

    def over(self) -> None:
        """It was answered."""
        ...

    def wait(self) -> None:
        """The rest is to be awaited, in a task. Told once, and nothing after it."""
        ...


class Course:
    """What a handler may return in place of a coroutine: a request that goes a long way in calls that do not wait, for
    which no task is needed. Awaited, it goes on from where it is, or from its beginning.

    A server that begins it sends at once: what `start` and `finish` return is over then.
    """

    @abstractmethod
    def begin(self, work: Work) -> bool:
        """Go on until something is to call back. False where the rest is to be awaited now."""

    @abstractmethod
    def stop(self) -> None:
        """Its client has left, or the server closes: it is to be awaited, and raises CancelledError then. Called while
        something is to call back.
        """

    @abstractmethod
    def __await__(self) -> Generator[None, None, None]: ...


Handler: TypeAlias = Callable[[Exchange], Awaitable[None]]


async def respond(
    exchange: Exchange, status: int, body: bytes, content_type: bytes, *extra: tuple[bytes, bytes]
) -> None:
    """Send a whole answer with its length."""
    length = str(len(body)).encode()
    await exchange.start(status, ((b"content-type", content_type), (b"content-length", length), *extra))
    if body and exchange.method != "HEAD":
        await exchange.write(body)
    await exchange.finish()
