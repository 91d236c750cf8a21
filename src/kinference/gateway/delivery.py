"""A destination's answer on its way out: head, relay, and the accounts afterwards, however it ends."""

from kinference.gateway import headers
from kinference.gateway.access_log import Record
from kinference.gateway.dispatch import Delivery
from kinference.gateway.itl import LAYOUT
from kinference.gateway.options import GatewayOptions, Outside
from kinference.gateway.passage import BYTES_PER_TOKEN, EventPassage, Passage, PlainPassage
from kinference.gateway.relay import Pipe, Relay
from kinference.gateway.reply import Reply
from kinference.gateway.routes import Route
from kinference.ids import Seconds
from kinference.ports import FinalTokenReport, Headers
from kinference.shapes.usage import Usage
from kinference.vocabulary import AbortReason
from kinference.wire.exchange import header

_NOT_BUFFERED = ((b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no"))


class Deliverer:
    """Relays one delivery to its client and reports it."""

    def __init__(self, outside: Outside, options: GatewayOptions, record: Record, route: Route) -> None:
        self._outside, self._options, self._record, self._route = outside, options, record, route

    async def deliver(self, delivery: Delivery, reply: Reply) -> None:
        """Send the answer. Raises nothing but ClientGone before its first byte, and its own cancellation."""
        answer, clock = delivery.answer, self._outside.clock
        passage = self._passage(delivery)
        await reply.start(answer.status, _head(answer.headers))
        pipe = Pipe(reply.exchange, answer, passage, clock, self._options.keep_alive)

        async def first_byte(now: Seconds) -> None:
            if self._route.runs_prompt:
                await delivery.ticket.began(now - delivery.sent_at, answer.status)

        relay = Relay(pipe, first_byte)
        try:
            await relay.run()
        finally:
            self._record.end = relay.end
            await answer.close()
            if relay.first_byte_at is not None:
                self._record.ttft_ms = (relay.first_byte_at - delivery.sent_at) * 1000
                await self._account(delivery, passage)

    async def _account(self, delivery: Delivery, passage: Passage) -> None:
        if not self._route.runs_prompt:
            await delivery.ticket.abort(AbortReason.NOT_DISPATCHED, "answered without running the prompt")
            return
        record, usage, gaps = self._record, passage.usage() or Usage(), passage.gaps()
        record.usage_estimated = usage.prompt_tokens is None or usage.completion_tokens is None
        record.prompt_tokens = _or(usage.prompt_tokens, delivery.body_bytes // BYTES_PER_TOKEN)
        record.completion_tokens = _or(usage.completion_tokens, passage.estimated_tokens())
        record.cached_tokens = usage.cached_tokens
        report = FinalTokenReport(
            response_id=delivery.ticket.response_id,
            model=usage.model or record.model,
            prompt_tokens=record.prompt_tokens,
            completion_tokens=record.completion_tokens,
            cached_tokens=record.cached_tokens,
            itl_bucket_counts=gaps,
            itl_bucket_layout=LAYOUT if gaps else 0,
        )
        await delivery.ticket.complete(report)

    def _passage(self, delivery: Delivery) -> Passage:
        api, received = self._route.api, delivery.answer.headers
        assert api is not None, "what was delivered was inferred"
        if headers.is_event_stream(received) and header(received, b"content-encoding") is None:
            return EventPassage(api, hide_usage=delivery.hide_usage)
        return PlainPassage(api)


def _or(counted: int | None, estimate: int) -> int:
    return estimate if counted is None else counted


def _head(received: Headers) -> Headers:
    fields = headers.to_client(received)
    if headers.is_event_stream(received):
        return (*fields, *_NOT_BUFFERED)
    length = header(received, b"content-length")
    return fields if length is None else (*fields, (b"content-length", length))
