"""Our side of the answer: the head fields that every answer carries, and errors in the client's dialect."""

from collections.abc import Awaitable

import msgspec

from kinference.gateway import errors
from kinference.gateway.access_log import End, Record
from kinference.gateway.errors import Refusal
from kinference.gateway.own_fields import own_fields
from kinference.gateway.routes import Dialect
from kinference.gateway.verdict import ErrorAnswer
from kinference.ports import Clock, Headers
from kinference.wire.exchange import Exchange, respond

JSON = b"application/json"


class Reply(msgspec.Struct, frozen=True):
    """The answer to one request, until its body."""

    exchange: Exchange
    dialect: Dialect
    record: Record
    clock: Clock

    def start(self, status: int, fields: Headers) -> Awaitable[None]:
        """Send the head of an answer whose body follows."""
        return self.exchange.start(status, (*fields, *self._own(status)))

    async def json(self, body: bytes, *extra: tuple[bytes, bytes]) -> None:
        """Send a whole answer of our own."""
        await respond(self.exchange, 200, body, JSON, *extra, *self._own(200))
        self.record.end = End.OK

    async def refuse(self, refusal: Refusal, *extra: tuple[bytes, bytes]) -> None:
        """Send an error of our own."""
        status = refusal.fault.status
        own = self._own(status)
        self.record.end = End.UPSTREAM_ERROR if self.record.attempts else End.REFUSED
        self.record.reason = refusal.message
        body = errors.body(refusal, self.dialect, self.record.request_id)
        fields = (*errors.headers(refusal), *self._tried(status), *extra, *own)
        await respond(self.exchange, status, body, JSON, *fields)

    async def pass_on(self, error: ErrorAnswer) -> None:
        """Send a destination's error."""
        length, tried = (b"content-length", str(len(error.body)).encode()), self._tried(error.status)
        head = [field for field in error.headers if not tried or field[0] != errors.SHOULD_RETRY]
        await self.start(error.status, (*head, *tried, length))
        self.record.end = End.UPSTREAM_ERROR
        await self.exchange.write(error.body)
        await self.exchange.finish()

    def _tried(self, status: int) -> Headers:
        is_tried_out = errors.is_tried_out(status, self.record.attempts)
        return ((errors.SHOULD_RETRY, b"false"),) if is_tried_out else ()

    def _own(self, status: int) -> Headers:
        return own_fields(self.record, self.dialect, self.clock, status)
