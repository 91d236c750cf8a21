"""One request and its answer as a handler sees them, on our own HTTP/1.1 connection."""

from collections.abc import Awaitable, Sequence
from typing import Final, Protocol

from kinference.ids import Seconds
from kinference.ports import Headers
from kinference.wire.fields import table
from kinference.wire.http1 import answers
from kinference.wire.http1.requests import RequestHead
from kinference.wire.over import OVER
from kinference.wire.own_exchange import OwnExchange
from kinference.wire.untaken import Untaken

BODY_HELD_MAX: Final = 256 * 1024
"""Body bytes that may wait for the handler before the client is made to wait."""


class Line(Protocol):
    """What an exchange needs of its connection."""

    @property
    def peer(self) -> str: ...
    @property
    def peer_names(self) -> Sequence[str]: ...
    @property
    def is_draining(self) -> bool: ...
    @property
    def is_congested(self) -> bool: ...
    @property
    def account(self) -> Untaken: ...
    def send_head(self, head: bytes) -> None:
        """Write in this turn of the event loop: with what follows, if something does."""
        ...

    def send(self, piece: bytes) -> None:
        """Write in this turn of the event loop."""
        ...

    def drained(self) -> Awaitable[None]:
        """Wait until the client has taken most of what was written, or is gone."""
        ...

    def date(self) -> bytes: ...
    def hold_reading(self) -> None: ...
    def go_on_reading(self) -> None: ...
    def turn_over(self) -> None:
        """The answer is complete."""
        ...

    def reset(self) -> None:
        """Break the connection off."""
        ...

    def close(self) -> None:
        """Close it when what was written has left."""
        ...


CLOSE = (b"connection", b"close")
"""The field by which a handler ends the connection with its answer."""


class Http1Exchange(OwnExchange):
    """A request and its answer. `receive`, `end_body`, `break_body` and `lose` are called by the connection."""

    def __init__(self, line: Line, head: RequestHead, accepted_at: Seconds) -> None:
        target = head.target if head.target.startswith("/") else _origin_form(head.target)
        path, _, query = target.partition("?")
        super().__init__(head, path, query, line.peer, accepted_at)
        self._line, self._account, self._is_http_1_1 = line, line.account, head.is_http_1_1
        self._held = 0
        self._is_chunked = False
        self.must_close = not head.keeps_alive
        """Whether the connection ends with this answer."""

    @property
    def peer_names(self) -> Sequence[str]:
        return self._line.peer_names

    # --- the request's body ----------------------------------------------------------------------

    def receive(self, piece: bytes) -> None:
        """Part of the body has come."""
        account, size = self._account, len(piece)
        self._held += size
        account.held += size
        if self._held > BODY_HELD_MAX or account.held > account.wait_above:
            self._line.hold_reading()
        super().receive(piece)

    def break_body(self) -> None:
        self.must_close = True
        super().break_body()

    def _take(self) -> Sequence[bytes]:
        pieces, self._pieces = self._pieces, []
        self.release()
        self._line.go_on_reading()
        return pieces

    def release(self) -> None:
        """What has come was taken, or nobody will take it any more."""
        held, self._held = self._held, 0
        if held:
            self._account.give_back(held)

    def _send_continue(self) -> None:
        if self._is_http_1_1:
            self._line.send(answers.CONTINUE)

    # --- the answer ------------------------------------------------------------------------------

    def start(self, status: int, headers: Headers) -> Awaitable[None]:
        told = table(headers)
        is_framed = self._promise(status, told) or not self._has_body
        self._is_chunked = not is_framed and self._is_http_1_1
        # A body left unread would be taken for the next request; without framing the connection's end is the answer's.
        self.must_close |= self._line.is_draining or not self.is_received or not (is_framed or self._is_chunked)
        tells_of_close = told.get(b"connection") == b"close"
        self.must_close |= tells_of_close
        own = self._own_fields(has_server=b"server" in told, tells_of_close=tells_of_close)
        head = answers.head(status, headers, own)
        self.is_started = True
        self._line.send_head(head)
        return OVER

    def _own_fields(self, *, has_server: bool, tells_of_close: bool) -> bytes:
        own = self._line.date()
        if not has_server:
            own += b"server: kinference\r\n"
        if self._is_chunked:
            own += b"transfer-encoding: chunked\r\n"
        if self.must_close and not tells_of_close:
            own += b"connection: close\r\n"
        elif not self._is_http_1_1:
            own += b"connection: keep-alive\r\n"
        return own

    def send(self, chunk: bytes) -> bool:
        line = self._line
        if chunk and self._is_chunked and not (self.is_over or self._is_lost):  # which has a body, of no known length
            if len(chunk) <= answers.JOINED_MAX:
                line.send(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            else:
                for piece in answers.chunk(chunk):
                    line.send(piece)
        elif self._counts(chunk):
            line.send(chunk)
        return not line.is_congested

    def catching_up(self) -> Awaitable[None]:
        return self._line.drained() if self._line.is_congested else OVER

    def _send_end(self) -> None:
        if self._is_chunked:
            self._line.send(answers.LAST_CHUNK)
        self._line.turn_over()

    def _send_reset(self) -> None:
        self._line.reset()

    def give_up(self, status: int) -> None:
        self.must_close = True
        super().give_up(status)

    def break_off(self) -> None:
        """End it for a handler that was cancelled."""
        if self.is_started:
            self.abort()
        else:
            self._line.close()

    def probe(self) -> bytes:
        """Bytes that change nothing for a client that reads; one that has vanished answers them with a reset."""
        if not self.is_started:
            return answers.CONTINUE if self._is_http_1_1 else b""
        return b"0" if self._is_chunked else b""  # a leading zero of the next chunk's size


def _origin_form(target: str) -> str:
    """The path and query of a request target, which a client may send as a whole URL."""
    if "://" not in target:
        return target
    _, slash, rest = target.partition("://")[2].partition("/")
    return slash + rest or "/"
