"""Our side of the answer: the head fields that every answer carries, and errors in the client's dialect."""

from collections.abc import Awaitable

import msgspec

from kinference.gateway import errors
from kinference.gateway.access_log import End, Record
from kinference.gateway.errors import Refusal
from kinference.gateway.rate_limits import rate_limit_fields
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
        return self.exchange.start(status, (*fields, *self._common(status)))

    async def json(self, body: bytes, *extra: tuple[bytes, bytes]) -> None:
        """Send a whole answer of our own."""
        await respond(self.exchange, 200, body, JSON, *extra, *self._common(200))
        self.record.end = End.OK

    async def refuse(self, refusal: Refusal, *extra: tuple[bytes, bytes]) -> None:
        """Send an error of our own."""
        status = refusal.fault.status
        common = self._common(status)
        self.record.end = End.UPSTREAM_ERROR if self.record.attempts else End.REFUSED
        self.record.reason = refusal.message
        body = errors.body(refusal, self.dialect, self.record.request_id)
        await respond(self.exchange, status, body, JSON, *errors.headers(refusal), *extra, *common)

    async def pass_on(self, error: ErrorAnswer) -> None:
        """Send a destination's error."""
        length = (b"content-length", str(len(error.body)).encode())
        await self.start(error.status, (*error.headers, length))
        self.record.end = End.UPSTREAM_ERROR
        await self.exchange.write(error.body)
        await self.exchange.finish()

    def _common(self, status: int) -> Headers:
        """What every answer carries. Nothing of ours but bytes on their way happens after it is made."""
        record, picked = self.record, self.record.picked
        record.status = status
        overhead_ms = record.set_overhead(self.clock.now())
        request_id = record.request_id.encode()
        fields = [
            (b"x-request-id", request_id),
            (b"x-kinference-overhead-ms", f"{overhead_ms:.3f}".encode()),
        ]
        if self.dialect is Dialect.ANTHROPIC:
            fields.append((b"request-id", request_id))
        if record.endpoint:
            fields.append((b"x-kinference-endpoint", record.endpoint.encode()))
        if picked is not None and (picked.requests is not None or picked.tokens is not None):
            fields += rate_limit_fields(picked, self.dialect, self.clock.wall())
        return fields
