"""A destination's answer on its way out: head, relay, and the accounts afterwards, however it ends."""

import msgspec

from kinference.errors import Draining, UpstreamCut, UpstreamTimeout
from kinference.gateway import errors, headers
from kinference.gateway.access_log import End, Record
from kinference.gateway.answering import Answering, as_array, translated_head
from kinference.gateway.array import array_of, wants_array
from kinference.gateway.attempts import Delivery
from kinference.gateway.errors import Refusal
from kinference.gateway.options import GatewayOptions, Outside
from kinference.gateway.relay import Relay
from kinference.gateway.reply import Reply
from kinference.gateway.routes import Route
from kinference.gateway.translation import WholeTranslation, read_whole
from kinference.ports import Headers
from kinference.shapes.answers import NoAnswer
from kinference.shapes.counting import read_count, write_count
from kinference.shapes.translate import WayBack
from kinference.vocabulary import AbortReason
from kinference.wire.exchange import Exchange
from kinference.wire.fields import header, table


class Deliverer(msgspec.Struct, frozen=True):
    """Relays one delivery to its client and reports it."""

    outside: Outside
    options: GatewayOptions
    record: Record
    route: Route

    async def deliver(self, delivery: Delivery, reply: Reply) -> None:
        """Send the answer, which whoever found it closes. Raises nothing but ClientGone before its first byte, and its
        own cancellation.
        """
        way_back = delivery.way_back
        if delivery.is_foreign_count:
            await self._deliver_count(delivery, reply)
        elif way_back is None or (_is_stream(delivery) and way_back.back.is_streaming):
            relay, head = self.relay(delivery, reply.exchange)
            await reply.start(delivery.answer.status, head)
            await relay.run()
        else:
            await self._deliver_whole(delivery, way_back, reply)

    def relay(self, delivery: Delivery, exchange: Exchange) -> tuple[Relay, Headers]:
        """What relays an answer, and the fields that go ahead of it."""
        answer, answering = delivery.answer, Answering(self.outside, self.record, self.route, delivery)
        flow, head = answering.flow(table(answer.headers), exchange)
        return Relay(answer, flow, self.options.keep_alive, answering.relayed), head

    async def _deliver_whole(self, delivery: Delivery, way_back: WayBack, reply: Reply) -> None:
        """Read all of an answer before the client hears of it: only then is it known to be one."""
        answering, is_stream = Answering(self.outside, self.record, self.route, delivery), _is_stream(delivery)
        answer = delivery.answer
        try:
            with self.outside.departure:
                received = await read_whole(answer, self.outside.metrics)
        except Draining as error:
            await reply.refuse(errors.refusal_of(error))
            return
        except (UpstreamCut, UpstreamTimeout) as error:
            answering.nothing_came()
            await reply.refuse(errors.refusal_of(error))
            return
        finally:
            await answer.close()
        now = self.outside.clock.now()
        answering.came(now)
        answering.began(now)
        try:
            whole = WholeTranslation(way_back.back, received, is_stream=is_stream)
        except NoAnswer as error:
            delivery.ticket.abort(AbortReason.UNSPECIFIED, "the destination's answer was none")
            await reply.refuse(Refusal(errors.EMPTY_ANSWER, str(error)))
            return
        answering.account(whole)
        told = msgspec.structs.replace(way_back, warnings=whole.warnings(way_back.warnings))
        body, head = whole.written(answering.frame(way_back)), translated_head(told)
        if way_back.back.is_streaming and wants_array(reply.exchange.path, reply.exchange.query):
            body, head = array_of(body), as_array(head)
        length = (b"content-length", str(len(body)).encode())
        await reply.start(answer.status, (*head, length))
        await reply.exchange.write(body)
        await reply.exchange.finish()
        self.record.end = End.OK

    async def _deliver_count(self, delivery: Delivery, reply: Reply) -> None:
        """A count of tokens in the client's own words."""
        assert self.route.api is not None, "what was delivered was inferred"
        try:
            tokens = read_count(await read_whole(delivery.answer, self.outside.metrics))
        except (UpstreamCut, UpstreamTimeout):
            tokens = None
        finally:
            await delivery.answer.close()
        delivery.ticket.abort(AbortReason.NOT_DISPATCHED, "answered without running the prompt")
        if tokens is None:
            await reply.refuse(Refusal(errors.EMPTY_ANSWER, "the destination's count was none"))
        else:
            await reply.json(write_count(self.route.api, tokens))


def _is_stream(delivery: Delivery) -> bool:
    return headers.is_stream(header(delivery.answer.headers, b"content-type"))
