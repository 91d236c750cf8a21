"""Who comes in, what for, and whether it is let in: what is known of a request before anything is waited for."""

from secrets import token_hex
from typing import Final

from kinference.gateway import errors, headers
from kinference.gateway.access_log import Record
from kinference.gateway.attempts import Order
from kinference.gateway.auth import ANYONE, Caller, Keyring
from kinference.gateway.backends import Inbound
from kinference.gateway.errors import Refusal
from kinference.gateway.held_body import HeldBody
from kinference.gateway.options import GatewayOptions, Outside
from kinference.gateway.routes import SERVED, Dialect, Route, dialect_of, missed
from kinference.structs import Frozen
from kinference.vocabulary import Api, Loss
from kinference.wire.exchange import Exchange
from kinference.wire.fields import Table, table
from kinference.wire.strangers import is_of_a_strange_page

_LOGGED_PATH_MAX: Final = 200
_NUMBER_BYTES: Final = 8
_WARN: Final = Loss.WARN
"""Read once: Python 3.11 finds a member of an enum by a hook of its metaclass, at ten times the price of a constant."""
_STRANGE_PAGE: Final = (
    "web pages from elsewhere, and whoever asks under another name than this machine's own, need a key (gateway.keys), "
    "or that name in listen.names"
)
_NO_KEY: Final = "no valid API key was given; send it as authorization: Bearer KEY, x-api-key or x-goog-api-key"
_APIS: Final = {api: api.value for api in Api}
_LOSSES: Final = {loss.value: loss for loss in Loss}
_NO_LOSS: Final = f"x-kinference-loss: no such value; write {', '.join(_LOSSES)}"


class Turned(Frozen, frozen=True):
    """What the client of a request is told that is not let in."""

    refusal: Refusal
    fields: tuple[tuple[bytes, bytes], ...] = ()


class Visit:
    """One request by its head, and its client."""

    def __init__(self, exchange: Exchange, told: Table, record: Record, dialect: Dialect) -> None:
        self.exchange, self.told, self.record, self.dialect = exchange, told, record, dialect
        self.caller: Caller = ANYONE
        self.loss = _WARN


class Door:
    """Where each request comes by."""

    def __init__(self, outside: Outside, options: GatewayOptions) -> None:
        self._picker, self._options = outside.picker, options
        self._keyring = Keyring(options.keys, allow_unauthenticated=options.allow_unauthenticated)
        self._body_limits = options.body_limits
        self._id_prefix, self._number = f"req_{token_hex(8)}", 0

    def meet(self, exchange: Exchange) -> Visit:
        """Begin a request's record, also of one that will not be let in."""
        told, path = table(exchange.headers), exchange.path
        request_id = headers.request_id_of(told) or self._new_request_id()
        record = Record(request_id, path[:_LOGGED_PATH_MAX], exchange.accepted_at)
        is_anthropic, is_google = b"anthropic-version" in told, b"x-goog-api-key" in told
        dialect = dialect_of(path, anthropic_version=is_anthropic, google_key=is_google)
        return Visit(exchange, told, record, dialect)

    def _new_request_id(self) -> str:
        """Unique, and no secret."""
        number = self._number = self._number + 1
        return self._id_prefix + number.to_bytes(_NUMBER_BYTES, "big").hex()  # half of what a format costs

    def let_in(self, visit: Visit, route: Route | None) -> Route | Turned:
        """The route of who may come in."""
        exchange = visit.exchange
        if route is None:
            return Turned(Refusal(errors.NOT_FOUND, f"no such path here; {_instead_of(exchange.path)}"))
        if exchange.method not in route.methods:
            told_instead = f"{exchange.method[:16]} is not served here; use {' or '.join(route.methods)}"
            return Turned(Refusal(errors.METHOD_NOT_ALLOWED, told_instead), ((b"allow", route.allow),))
        caller = self._keyring.identify(exchange.headers)
        if caller is None:
            return Turned(Refusal(errors.UNAUTHENTICATED, _NO_KEY))
        names = self._options.own_names
        if caller is ANYONE and names is not None and is_of_a_strange_page(exchange.method, exchange.headers, names):
            return Turned(Refusal(errors.FORBIDDEN, _STRANGE_PAGE))
        visit.caller, visit.record.tenant = caller, caller.tenant
        if route.api is not None:
            visit.record.api = _APIS[route.api]
            loss = loss_of(visit.told, self._options.loss)
            if loss is None:
                return Turned(Refusal(errors.BAD_REQUEST, _NO_LOSS))
            visit.loss = loss
        return route

    def order(self, visit: Visit, route: Route) -> Order:
        """What is to be served."""
        exchange, api = visit.exchange, route.api
        assert api is not None, "what infers has an API"
        body = HeldBody(self._body_limits, self._picker)
        inbound = Inbound(exchange.path, exchange.query, exchange.headers, visit.record.request_id, api)
        return Order(visit.caller, inbound, body, not route.runs_prompt, visit.loss)


def _instead_of(path: str) -> str:
    """What to ask for in place of a path that is none of ours."""
    meant = missed(path)
    return f"did you mean {meant}? look for /v1 in the client's base URL" if meant else f"there are {', '.join(SERVED)}"


def explained(refusal: Refusal, received: Table) -> Refusal:
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
