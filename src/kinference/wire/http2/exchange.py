"""One request and its answer as a handler sees them, on a stream of our own HTTP/2 connection."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Final, Protocol

from kinference.ids import Seconds
from kinference.ports import Headers
from kinference.wire.fields import table
from kinference.wire.http2.fields import CR, LF
from kinference.wire.http2.headers import literal
from kinference.wire.http2.http_head import HttpHead
from kinference.wire.over import OVER
from kinference.wire.own_exchange import OwnExchange, wake

CONTINUE: Final = literal(b":status", b"100")
SERVER: Final = literal(b"server", b"kinference")


class Line(Protocol):
    """What an exchange needs of its connection."""

    @property
    def peer(self) -> str: ...
    @property
    def peer_names(self) -> Sequence[str]: ...
    def date(self) -> bytes:
        """The `date` field, as a header block."""
        ...

    def taken(self, stream_id: int, size: int) -> None:
        """The handler took so many bytes: the client may send as many again."""
        ...

    def needs_bytes(self) -> None:
        """The handler begins to wait for the client."""
        ...

    def send_head(self, stream_id: int, block: bytes) -> None: ...
    def send_body(self, stream_id: int, chunk: bytes) -> bool:
        """Send, at the end of the event loop's round at the latest. False when some has to wait: `go_on` follows."""
        ...

    def finish(self, stream_id: int) -> None:
        """The answer is complete."""
        ...

    def reset(self, stream_id: int) -> None:
        """The answer never will be."""
        ...


class Http2Exchange(OwnExchange):
    """A request and its answer. `receive`, `end_body`, `go_on` and `lose` are called by the connection."""

    def __init__(self, line: Line, stream_id: int, head: HttpHead, accepted_at: Seconds) -> None:
        super().__init__(head, head.path, head.query, line.peer, accepted_at)
        self._line, self._stream_id = line, stream_id
        self._is_behind = False
        """Whether the client has yet to take what was sent."""
        self._drain: asyncio.Future[None] | None = None

    @property
    def peer_names(self) -> Sequence[str]:
        return self._line.peer_names

    def lose(self) -> None:
        super().lose()
        self.go_on()

    # --- the request's body ----------------------------------------------------------------------

    def _take(self) -> Sequence[bytes]:
        pieces, self._pieces = self._pieces, []
        self._line.taken(self._stream_id, sum(map(len, pieces)))
        return pieces

    def _expect(self) -> None:
        self._line.needs_bytes()

    def _send_continue(self) -> None:
        self._line.send_head(self._stream_id, CONTINUE)

    # --- the answer ------------------------------------------------------------------------------

    def start(self, status: int, headers: Headers) -> Awaitable[None]:
        told = table(headers)
        self._promise(status, told)
        block = answer_head(status, headers) + self._line.date()
        if b"server" not in told:
            block += SERVER
        self.is_started = True
        self._line.send_head(self._stream_id, block)
        return OVER

    def send(self, chunk: bytes) -> bool:
        if self._counts(chunk):
            self._is_behind = not self._line.send_body(self._stream_id, chunk)
        return not self._is_behind

    def catching_up(self) -> Awaitable[None]:
        if not self._is_behind:
            return OVER
        self._drain = drain = asyncio.get_running_loop().create_future()
        return drain

    def go_on(self) -> None:
        """The client has taken what was written."""
        self._is_behind = False
        wake(self._drain)

    def _send_end(self) -> None:
        self._line.finish(self._stream_id)

    def _send_reset(self) -> None:
        self._line.reset(self._stream_id)

    def break_off(self) -> None:
        """End it for a handler that was cancelled."""
        self.abort()


def answer_head(status: int, headers: Headers) -> bytes:
    """The header block of an answer, without what is about connections (RFC 9113 8.2.2).

    Raises ValueError for a line break inside a field.
    """
    for name, value in headers:
        if LF in value or CR in value or LF in name or CR in name:
            raise ValueError("a header field with a line break inside")
    return b"".join(
        [
            literal(b":status", b"%d" % status),
            *[literal(name, value) for name, value in headers if name != b"connection"],
        ]
    )
