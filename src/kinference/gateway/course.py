"""The way that requests ordinarily go: their body is here, a destination is picked at once and asked over a connection
that is open, and its answer comes in one piece, or as a stream that its client takes as it comes. Nothing of that waits
but for the answer, which calls back.

Where a request leaves that way it is awaited, and `service` goes on from what has been done; so does it where something
failed, for there is one place where each failure is met.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import TypeAlias

from kinference.errors import Draining, KinferenceError, UpstreamUnreachable
from kinference.gateway import access_log
from kinference.gateway.answering import Answering
from kinference.gateway.attempts import Delivery
from kinference.gateway.dispatch import Dispatch
from kinference.gateway.door import Door, Visit
from kinference.gateway.options import GatewayOptions, Outside
from kinference.gateway.own_fields import own_fields
from kinference.gateway.relay import Relay
from kinference.gateway.routes import Route, find
from kinference.gateway.streaming import Streaming
from kinference.ports import Asked, UpstreamAnswer
from kinference.wire.exchange import Course, Exchange, Handler, Work
from kinference.wire.fields import table

Rest: TypeAlias = "Callable[[Serving], Awaitable[None]]"
"""Awaits what is left of one."""


class Entry:
    """Where requests come in. Each is served by the configuration of its beginning."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        """Of the configuration as it is now."""

    def handle(self, exchange: Exchange) -> Awaitable[None]:
        """Serve one request: the entry point for the HTTP carrier."""
        return self.handler(exchange)


class Courses:
    """The requests of one configuration."""

    def __init__(self, door: Door, outside: Outside, options: GatewayOptions, rest: Rest) -> None:
        self._door, self._outside, self._options, self._rest = door, outside, options, rest

    def handle(self, exchange: Exchange) -> "Serving":
        """Serve one request."""
        return Serving(exchange, self._door, self._outside, self._options, self._rest)


class Serving(Course):
    """One request, and what has been done of it."""

    visit: Visit | None = None
    dispatch: Dispatch | None = None
    delivery: Delivery | None = None
    relay: Relay | None = None
    """Its head has been sent."""
    failure: BaseException | None = None
    """What is to be raised where it is awaited."""
    _asked: Asked | None = None
    _stream: Streaming | None = None
    """What it waits for: an answer, or the rest of one."""
    _work: Work | None = None
    """For as long as something is to call back: it holds this as well."""
    _route: Route

    def __init__(self, exchange: Exchange, door: Door, outside: Outside, options: GatewayOptions, rest: Rest) -> None:
        self.exchange = exchange
        self._door, self._outside, self._options, self._rest = door, outside, options, rest

    def __await__(self) -> Generator[None, None, None]:
        return self._rest(self).__await__()

    def begin(self, work: Work) -> bool:
        self._work = work
        try:
            is_on_its_way = self._begin()
        except Exception as error:  # noqa: BLE001 - task root: a call of the server's, where `service` meets it
            self.failure = error
            is_on_its_way = False
        if not is_on_its_way:
            self._work = None
            self._outside.departure.leave(self)
        return is_on_its_way

    def _begin(self) -> bool:
        exchange, outside = self.exchange, self._outside
        route = find(exchange.path)
        if route is None or route.api is None:
            return False
        self._route = route
        self.visit = visit = self._door.meet(exchange)
        if self._door.let_in(visit, route) is not route:
            return False
        self.dispatch = dispatch = Dispatch(outside, self._options, visit.record, self._door.order(visit, route))
        outside.departure.join(self)
        request = dispatch.begin(exchange)
        if request is None:
            return False
        try:
            self._asked = outside.upstream.ask(request, self._answered)
        except UpstreamUnreachable as error:
            dispatch.take_up(error)
        return self._asked is not None

    # --- the answer ------------------------------------------------------------------------------

    def _answered(self, came: UpstreamAnswer | KinferenceError | None) -> None:
        dispatch, self._asked = self.dispatch, None
        assert dispatch is not None, "it asked"
        try:
            delivery = dispatch.take_up(came)
            stream = dispatch.stream() if delivery is None else None
            if stream is not None:
                self._stream = streaming = Streaming(self, dispatch, stream, self._options.keep_alive)
                streaming.begin()
                return
            is_over = delivery is not None and self._deliver(delivery)
        except Exception as error:  # noqa: BLE001 - task root: a call of the upstream's, where `service` meets it
            self.settle(is_over=False, failure=error)
        else:
            self.settle(is_over=is_over)

    def _deliver(self, delivery: Delivery) -> bool:
        """Deliver an answer in one piece. Whether that is all."""
        relay = self.start(delivery)
        return relay is not None and relay.at_once(delivery.whole)

    def start(self, delivery: Delivery) -> Relay | None:
        """Send the head of an answer, which is then to be relayed. None where there is more to it."""
        visit, self.delivery = self.visit, delivery
        assert visit is not None, "it was let in"
        if delivery.way_back is not None or delivery.is_foreign_count:
            return None
        answer, exchange = delivery.answer, self.exchange
        answering = Answering(self._outside, visit.record, self._route, delivery)
        flow, head = answering.flow(table(answer.headers) if delivery.told is None else delivery.told, exchange)
        relay, status = Relay(answer, flow, self._options.keep_alive, answering.relayed), answer.status
        exchange.start(status, (*head, *own_fields(visit.record, visit.dialect, self._outside.clock, status)))
        self.relay = relay
        self._outside.departure.leave(self)
        return relay

    def settle(self, *, is_over: bool, failure: BaseException | None = None) -> None:
        """It was served, or its rest is to be awaited: nothing calls back any more."""
        work, self._work, self._stream = self._work, None, None
        assert work is not None, "something was to call back"
        self._outside.departure.leave(self)
        self.failure = failure
        if not is_over:
            work.wait()
            return
        dispatch, visit = self.dispatch, self.visit
        assert dispatch is not None, "it asked"
        assert visit is not None, "it was let in"
        dispatch.close()
        access_log.write(visit.record, self._outside.clock.now(), self._outside.metrics)
        work.over()

    # --- when it ends before ---------------------------------------------------------------------

    def stop(self) -> None:
        self._turn_back(asyncio.CancelledError())

    def turn_back(self, why: Draining) -> None:
        """The process ends before its answer has begun."""
        self._turn_back(why)

    def _turn_back(self, why: BaseException) -> None:
        asked, self._asked = self._asked, None
        if asked is not None:
            asked.drop()
        elif self._stream is not None:
            self._stream.stop()
        self.settle(is_over=False, failure=why)
