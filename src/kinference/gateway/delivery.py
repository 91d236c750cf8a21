"""A destination's answer on its way out: head, relay, and the accounts afterwards, however it ends."""

import msgspec

from kinference.errors import Draining, UpstreamCut, UpstreamTimeout
from kinference.gateway import errors, headers
from kinference.gateway.access_log import End, Record
from kinference.gateway.array import CONTENT_TYPE, ArrayPassage, array_of, wants_array
from kinference.gateway.dispatch import Delivery
from kinference.gateway.errors import Refusal
from kinference.gateway.itl import LAYOUT
from kinference.gateway.options import GatewayOptions, Outside
from kinference.gateway.passage import BYTES_PER_TOKEN, Counted, EventPassage, Passage, PlainPassage
from kinference.gateway.relay import Pipe, Relay
from kinference.gateway.reply import Reply
from kinference.gateway.routes import Route
from kinference.gateway.translation import TranslatedPassage, WholeTranslation, read_whole
from kinference.ids import Seconds
from kinference.ports import FinalTokenReport, Headers
from kinference.shapes.answers import Frame, NoAnswer
from kinference.shapes.counting import read_count, write_count
from kinference.shapes.translate import WayBack
from kinference.shapes.usage import Usage
from kinference.vocabulary import AbortReason
from kinference.wire.exchange import Table, table

WARNINGS = b"x-kinference-warnings"
_NOT_BUFFERED = ((b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no"))


class Deliverer(msgspec.Struct, frozen=True):
    """Relays one delivery to its client and reports it."""

    outside: Outside
    options: GatewayOptions
    record: Record
    route: Route

    async def deliver(self, delivery: Delivery, reply: Reply) -> None:
        """Send the answer. Raises nothing but ClientGone before its first byte, and its own cancellation."""
        answer, clock = delivery.answer, self.outside.clock
        if delivery.is_foreign_count:
            await self._deliver_count(delivery, reply)
            return
        told = table(answer.headers)
        if delivery.way_back is not None and not headers.is_stream(told):
            await self._deliver_whole(delivery, delivery.way_back, reply)
            return
        passage, head = self._passage(delivery, told), _head(delivery, told)
        if _wants_array(reply) and headers.is_event_stream(table(head)):
            passage, head = ArrayPassage(passage), _as_array(head)
        await reply.start(answer.status, head)
        pipe = Pipe(reply.exchange, answer, passage, clock, self.options.keep_alive)

        def first_byte(now: Seconds) -> None:
            if self.route.runs_prompt:
                delivery.ticket.began(now - delivery.sent_at, answer.status)

        relay = Relay(pipe, first_byte)
        try:
            await relay.run()
        finally:
            self.record.end = relay.end
            await answer.close()
            if relay.first_byte_at is not None:
                self.record.ttft_ms = (relay.first_byte_at - delivery.sent_at) * 1000
                self._account(delivery, passage, broken=relay.end is End.UPSTREAM_CUT)
            elif relay.end is End.UPSTREAM_CUT:
                self._nothing_came(delivery)

    async def _deliver_whole(self, delivery: Delivery, way_back: WayBack, reply: Reply) -> None:
        """Read all of an answer before the client hears of it: only then is it known to be one."""
        answer, clock = delivery.answer, self.outside.clock
        try:
            received = await self.outside.departure.unless_over(read_whole(answer))
        except Draining as error:
            await reply.refuse(errors.refusal_of(error))
            return
        except (UpstreamCut, UpstreamTimeout) as error:
            self._nothing_came(delivery)
            await reply.refuse(errors.refusal_of(error))
            return
        finally:
            await answer.close()
        now = clock.now()
        self.record.ttft_ms = (now - delivery.sent_at) * 1000
        delivery.ticket.began(now - delivery.sent_at, answer.status)
        try:
            whole = WholeTranslation(way_back.back, received)
        except NoAnswer as error:
            delivery.ticket.abort(AbortReason.UNSPECIFIED, "the destination's answer was none")
            await reply.refuse(Refusal(errors.EMPTY_ANSWER, str(error)))
            return
        self._account(delivery, whole)
        told = msgspec.structs.replace(way_back, warnings=whole.warnings(way_back.warnings))
        body, head = whole.written(self._frame(way_back)), _translated_head(told)
        if _wants_array(reply) and headers.is_event_stream(table(head)):
            body, head = array_of(body), _as_array(head)
        length = (b"content-length", str(len(body)).encode())
        await reply.start(answer.status, (*head, length))
        await reply.exchange.write(body)
        await reply.exchange.finish()
        self.record.end = End.OK

    async def _deliver_count(self, delivery: Delivery, reply: Reply) -> None:
        """A count of tokens in the client's own words."""
        assert self.route.api is not None, "what was delivered was inferred"
        try:
            tokens = read_count(await read_whole(delivery.answer))
        except (UpstreamCut, UpstreamTimeout):
            tokens = None
        finally:
            await delivery.answer.close()
        delivery.ticket.abort(AbortReason.NOT_DISPATCHED, "answered without running the prompt")
        if tokens is None:
            await reply.refuse(Refusal(errors.EMPTY_ANSWER, "the destination's count was none"))
        else:
            await reply.json(write_count(self.route.api, tokens))

    def _nothing_came(self, delivery: Delivery) -> None:
        """The destination promised an answer by its head, and broke off: that is a failure of its own."""
        if self.route.runs_prompt:
            waited = self.outside.clock.now() - delivery.sent_at
            delivery.ticket.began(waited, errors.UPSTREAM_BROKEN.status)
        delivery.ticket.abort(AbortReason.UNSPECIFIED, "the destination broke its answer off")

    def _account(self, delivery: Delivery, passage: Counted, *, broken: bool = False) -> None:
        if not self.route.runs_prompt:
            delivery.ticket.abort(AbortReason.NOT_DISPATCHED, "answered without running the prompt")
            return
        record, usage, gaps = self.record, passage.usage() or Usage(), passage.gaps()
        prompt, completion = usage.prompt_tokens, usage.completion_tokens
        record.usage_estimated = prompt is None or completion is None
        record.prompt_tokens = delivery.body_bytes // BYTES_PER_TOKEN if prompt is None else prompt
        record.completion_tokens = passage.estimated_tokens() if completion is None else completion
        record.cached_tokens = usage.cached_tokens
        report = FinalTokenReport(
            response_id=delivery.ticket.response_id,
            model=usage.model or record.model,
            prompt_tokens=record.prompt_tokens,
            completion_tokens=record.completion_tokens,
            cached_tokens=record.cached_tokens,
            itl_bucket_counts=gaps,
            itl_bucket_layout=LAYOUT if gaps else 0,
            broken=broken,
        )
        delivery.ticket.complete(report)

    def _passage(self, delivery: Delivery, told: Table) -> Passage:
        api = self.route.api
        assert api is not None, "what was delivered was inferred"
        if delivery.way_back is not None:
            return TranslatedPassage(delivery.way_back.back, self._frame(delivery.way_back))
        if headers.is_event_stream(told) and b"content-encoding" not in told:
            return EventPassage(api, hide_usage=delivery.hide_usage)
        return PlainPassage(api)

    def _frame(self, way_back: WayBack) -> Frame:
        back = way_back.back
        return Frame(self.record.request_id, int(self.outside.clock.wall()), back.wants_usage, back.echo)


def _translated_head(way_back: WayBack) -> Headers:
    kind = b"text/event-stream; charset=utf-8" if way_back.back.is_streaming else b"application/json"
    fields = ((b"content-type", kind), *(_NOT_BUFFERED if way_back.back.is_streaming else ()))
    return (*fields, (WARNINGS, way_back.warnings.encode())) if way_back.warnings else fields


def _head(delivery: Delivery, told: Table) -> Headers:
    if delivery.way_back is not None:
        return _translated_head(delivery.way_back)
    fields = headers.to_client(delivery.answer.headers)
    if headers.is_event_stream(told):
        return (*fields, *_NOT_BUFFERED)
    length = told.get(b"content-length")
    return fields if length is None else (*fields, (b"content-length", length))


def _wants_array(reply: Reply) -> bool:
    return wants_array(reply.exchange.path, reply.exchange.query)


def _as_array(head: Headers) -> Headers:
    return [CONTENT_TYPE if field[0] == CONTENT_TYPE[0] else field for field in head]
