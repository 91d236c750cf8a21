"""The HTTP data plane: each request by its route, from the first byte in to the last report out."""

import asyncio
from contextlib import suppress
from typing import Final
from urllib.parse import unquote

from kinference.errors import ClientGone, KinferenceError
from kinference.gateway import access_log, errors, listing
from kinference.gateway.access_log import End
from kinference.gateway.answering import WARNINGS
from kinference.gateway.attempts import Delivery
from kinference.gateway.auth import Caller
from kinference.gateway.course import Courses, Serving
from kinference.gateway.delivery import Deliverer
from kinference.gateway.dispatch import Dispatch
from kinference.gateway.door import Door, Turned, Visit, explained
from kinference.gateway.errors import Refusal
from kinference.gateway.options import GatewayOptions, Outside
from kinference.gateway.reply import Reply
from kinference.gateway.routes import Duty, Route, find, shown_by
from kinference.gateway.search import Estimated, Search
from kinference.gateway.verdict import ErrorAnswer
from kinference.observe.metrics import BODIES_REFUSED
from kinference.shapes.counting import write_count
from kinference.wire.exchange import respond

_HEALTH: Final = Duty.HEALTH
"""Read once: Python 3.11 finds a member of an enum by a hook of its metaclass, at ten times the price of a constant."""


class Gateway:
    """Serves the clients' APIs. Knows a picker, an upstream and a directory, and not what is behind them."""

    def __init__(self, outside: Outside, options: GatewayOptions) -> None:
        self._outside, self._options = outside, options
        self._door = Door(outside, options)
        self.handle = Courses(self._door, outside, options, self._serve).handle
        """The entry point for the HTTP carrier."""

    async def _serve(self, serving: Serving) -> None:
        """All of a request, or the rest of one that has come some way."""
        exchange = serving.exchange
        route = find(exchange.path)
        if route is not None and route.duty is _HEALTH and exchange.method in route.methods:
            await respond(exchange, 200, b"", b"text/plain")
            return
        visit = serving.visit or self._door.meet(exchange)
        try:
            admitted = self._door.let_in(visit, route)
            if isinstance(admitted, Route) and admitted.api is not None:
                await self._infer(visit, admitted, serving)
            else:
                await self._tell(visit, admitted)
        except (ClientGone, asyncio.CancelledError):
            visit.record.client_left()
            raise
        except Exception:  # whatever it was, its server logs it
            await self._own_up(visit)
            raise
        finally:
            access_log.write(visit.record, self._outside.clock.now(), self._outside.metrics)

    def _reply(self, visit: Visit) -> Reply:
        return Reply(visit.exchange, visit.dialect, visit.record, self._outside.clock)

    async def _own_up(self, visit: Visit) -> None:
        """A fault of ours is told in the client's words, where no head has gone."""
        if visit.record.status:
            return
        with suppress(ClientGone):
            await self._reply(visit).refuse(
                Refusal(errors.INTERNAL, "the gateway failed at this request; its log says how")
            )
        visit.record.end = End.INTERNAL

    async def _tell(self, visit: Visit, route: Route | Turned) -> None:
        """Answer what needs no destination."""
        reply = self._reply(visit)
        if isinstance(route, Turned):
            await reply.refuse(route.refusal, *route.fields)
        elif route.duty is Duty.LIST_MODELS:
            await self._list_models(reply, visit.caller)
        else:
            await self._show_model(reply, visit.caller)

    async def _list_models(self, reply: Reply, caller: Caller) -> None:
        directory = self._outside.directory
        shown = (
            model for model in directory.models() if not model.is_glob and directory.allows(caller.tenant, model.id)
        )
        await reply.json(listing.of_many(shown, reply.dialect))

    async def _show_model(self, reply: Reply, caller: Caller) -> None:
        directory = self._outside.directory
        name = unquote(shown_by(reply.exchange.path))
        found = next((model for model in directory.models() if model.id == name and not model.is_glob), None)
        if found is None or not directory.allows(caller.tenant, name):
            await reply.refuse(Refusal(errors.UNKNOWN_MODEL, "no such model is served here; GET /v1/models lists them"))
            return
        await reply.json(listing.of_one(found, reply.dialect))

    async def _infer(self, visit: Visit, route: Route, serving: Serving) -> None:
        outside, reply, record = self._outside, self._reply(visit), visit.record
        dispatch = serving.dispatch or Dispatch(outside, self._options, record, self._door.order(visit, route))
        order = dispatch.order
        try:
            outcome: Delivery | Estimated | Refusal | ErrorAnswer | None
            try:
                if serving.failure is not None:
                    raise serving.failure
                outcome = serving.delivery
                if outcome is None:
                    with outside.departure:
                        outcome = await Search(dispatch).run(serving.exchange)
            except ClientGone:
                raise
            except KinferenceError as error:
                if error.limit:
                    outside.metrics.count(BODIES_REFUSED, error.limit)
                outcome = errors.refusal_of(error)
            if serving.relay is not None:
                await serving.relay.run()
            elif isinstance(outcome, Delivery):
                await Deliverer(outside, self._options, record, route).deliver(outcome, reply)
            elif isinstance(outcome, Estimated):
                await reply.json(write_count(order.inbound.api, outcome.tokens), (WARNINGS, b"estimated=tokens"))
            elif isinstance(outcome, Refusal):
                await reply.refuse(explained(outcome, visit.told))
            elif outcome is not None:
                await reply.pass_on(outcome)
        finally:
            await dispatch.close()
            order.body.placed()
