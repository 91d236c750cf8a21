"""The HTTP data plane: each request by its route, from the first byte in to the last report out."""

import asyncio
from collections.abc import Awaitable
from itertools import count
from secrets import token_hex
from urllib.parse import unquote

from kinference.errors import ClientGone, KinferenceError
from kinference.gateway import access_log, errors, headers, listing
from kinference.gateway.access_log import Record
from kinference.gateway.auth import ANYONE, Caller, Keyring
from kinference.gateway.backends import Inbound
from kinference.gateway.delivery import WARNINGS, Deliverer
from kinference.gateway.dispatch import Delivery, Dispatch, Estimated, Order
from kinference.gateway.errors import Refusal
from kinference.gateway.ingress import HeldBody
from kinference.gateway.options import GatewayOptions, Outside
from kinference.gateway.reply import Reply
from kinference.gateway.routes import SERVED, Duty, Route, dialect_of, find, missed, shown_by
from kinference.gateway.verdict import ErrorAnswer
from kinference.observe.metrics import BODIES_REFUSED
from kinference.shapes.counting import write_count
from kinference.vocabulary import Api, Loss
from kinference.wire.exchange import Exchange, Table, respond, table
from kinference.wire.strangers import is_of_a_strange_page

_LOGGED_PATH_MAX = 200
_STRANGE_PAGE = (
    "web pages from elsewhere, and whoever asks under another name than this machine's own, need a key (gateway.keys), "
    "or that name in listen.names"
)
_APIS = {api: api.value for api in Api}
_LOSSES = {loss.value: loss for loss in Loss}
_NO_LOSS = f"x-kinference-loss: no such value; write {', '.join(_LOSSES)}"


class Gateway:
    """Serves the clients' APIs. Knows a picker, an upstream and a directory, and not what is behind them."""

    def __init__(self, outside: Outside, options: GatewayOptions) -> None:
        self._outside, self._options = outside, options
        self._keyring = Keyring(options.keys, allow_unauthenticated=options.allow_unauthenticated)
        self._body_limits = options.body_limits
        self._id_prefix, self._numbers = f"req_{token_hex(8)}", count(1)

    async def handle(self, exchange: Exchange) -> None:
        """Serve one request: the entry point for the HTTP carrier."""
        route = find(exchange.path)
        if route is not None and route.api is None and route.duty is Duty.HEALTH and exchange.method in route.methods:
            await respond(exchange, 200, b"", b"text/plain")
            return
        told = table(exchange.headers)
        request_id = headers.request_id_of(told) or self._new_request_id()
        record = Record(request_id, exchange.path[:_LOGGED_PATH_MAX], exchange.accepted_at)
        is_anthropic, is_google = b"anthropic-version" in told, b"x-goog-api-key" in told
        dialect = dialect_of(exchange.path, anthropic_version=is_anthropic, google_key=is_google)
        reply = Reply(exchange, dialect, record, self._outside.clock)
        try:
            await self._serve(route, reply, told)
        except (ClientGone, asyncio.CancelledError):
            record.client_left()
            raise
        finally:
            access_log.write(record, self._outside.clock.now(), self._outside.metrics)

    def _new_request_id(self) -> str:
        """Unique, and no secret."""
        return f"{self._id_prefix}{next(self._numbers):016x}"

    def _serve(self, route: Route | None, reply: Reply, told: Table) -> Awaitable[None]:
        """Who answers, and with what."""
        exchange = reply.exchange
        if route is None:
            return reply.refuse(Refusal(errors.NOT_FOUND, f"no such path here; {_instead_of(exchange.path)}"))
        if exchange.method not in route.methods:
            told_instead = f"{exchange.method[:16]} is not served here; use {' or '.join(route.methods)}"
            refusal = Refusal(errors.METHOD_NOT_ALLOWED, told_instead)
            return reply.refuse(refusal, (b"allow", route.allow))
        caller = self._keyring.identify(exchange.headers)
        if caller is None:
            return reply.refuse(Refusal(errors.UNAUTHENTICATED, "no valid API key was given"))
        names = self._options.own_names
        if caller is ANYONE and names is not None and is_of_a_strange_page(exchange.method, exchange.headers, names):
            return reply.refuse(Refusal(errors.FORBIDDEN, _STRANGE_PAGE))
        reply.record.tenant = caller.tenant
        if route.api is not None:
            return self._infer(route, reply, caller, told)
        return self._list_models(reply, caller) if route.duty is Duty.LIST_MODELS else self._show_model(reply, caller)

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

    async def _infer(self, route: Route, reply: Reply, caller: Caller, told: Table) -> None:
        exchange, record, api = reply.exchange, reply.record, route.api
        assert api is not None, "what infers has an API"
        record.api = _APIS[api]
        loss = loss_of(told, self._options.loss)
        if loss is None:
            await reply.refuse(Refusal(errors.BAD_REQUEST, _NO_LOSS))
            return
        body = HeldBody(self._body_limits, self._outside.picker)
        inbound = Inbound(exchange.path, exchange.query, exchange.headers, record.request_id, api)
        order = Order(caller, inbound, body, not route.runs_prompt, loss)
        dispatch = Dispatch(self._outside, self._options, record, order)
        try:
            outcome: Delivery | Estimated | Refusal | ErrorAnswer
            try:
                outcome = await self._outside.departure.unless_over(dispatch.run(exchange))
            except ClientGone:
                raise
            except KinferenceError as error:
                if error.limit:
                    self._outside.metrics.count(BODIES_REFUSED, error.limit)
                outcome = errors.refusal_of(error)
            if isinstance(outcome, Delivery):
                await Deliverer(self._outside, self._options, record, route).deliver(outcome, reply)
            elif isinstance(outcome, Estimated):
                await reply.json(write_count(api, outcome.tokens), (WARNINGS, b"estimated=tokens"))
            elif isinstance(outcome, Refusal):
                await reply.refuse(_explained(outcome, told))
            else:
                await reply.pass_on(outcome)
        finally:
            await dispatch.close()
            body.placed()


def _instead_of(path: str) -> str:
    """What to ask for in place of a path that is none of ours."""
    meant = missed(path)
    return f"did you mean {meant}? look for /v1 in the client's base URL" if meant else f"there are {', '.join(SERVED)}"


def _explained(refusal: Refusal, received: Table) -> Refusal:
    """What cannot be read may be compressed, which only the head tells of."""
    if refusal.fault is not errors.BAD_REQUEST or b"content-encoding" not in received:
        return refusal
    return Refusal(errors.COMPRESSED, f"{refusal.message}; compressed bodies are not read: leave content-encoding out")


def loss_of(told: Table, configured: Loss) -> Loss | None:
    """What a lossy translation comes to for one request: its header can make it stricter and no laxer. None where it
    says what there is not: who mistypes `strict` is not to lose anything for it.
    """
    wanted = told.get(b"x-kinference-loss")
    if wanted is None:
        return configured
    named = _LOSSES.get(wanted.decode("latin-1").strip().lower())
    return named and max(configured, named, key=list(Loss).index)
