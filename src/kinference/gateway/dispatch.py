"""Finding a destination that answers: place and send, and again elsewhere while the client has seen nothing.

A `Dispatch` is one client's request from its body to the head of an answer. Whatever it leaves open (a ticket, an
answer) is closed by `close`, which its owner calls however the request ends.
"""

import logging
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from kinference.errors import (
    KinferenceError,
    NoConnectionLeft,
    UpstreamCut,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from kinference.gateway import errors, verdict
from kinference.gateway.access_log import Record
from kinference.gateway.auth import Caller
from kinference.gateway.backends import Inbound, Leg, chat_leg_to, leg_to
from kinference.gateway.errors import Refusal
from kinference.gateway.ingress import HeldBody
from kinference.gateway.opening import Opening, error_in
from kinference.gateway.options import GatewayOptions, Outside
from kinference.gateway.ticket import Ticket
from kinference.gateway.translation import in_chat, known_way_back, way_back
from kinference.gateway.verdict import Blame, ErrorAnswer
from kinference.ids import Address, Seconds, StreamId
from kinference.observe.metrics import GATEWAY_FAILURES
from kinference.ports import (
    LocalTarget,
    PickArguments,
    PickResult,
    Placed,
    ProviderTarget,
    UpstreamAnswer,
    UpstreamRequest,
)
from kinference.shapes import detect, patch
from kinference.shapes.counting import count_request, estimate
from kinference.shapes.scan import BadBody
from kinference.shapes.translate import Way, WayBack
from kinference.vocabulary import AbortReason, Api, Loss, StreamUsage
from kinference.wire.exchange import Exchange
from kinference.wire.sigv4 import Signable, signature

_log = logging.getLogger(__name__)

_NOWHERE: Final[frozenset[LocalTarget | ProviderTarget]] = frozenset()
_NO_STREAM = StreamId(0)
"""The body comes with the call."""
AWS_SERVICE = "bedrock"
_UNREACHABLE_STATUS = 502
"""Reported for a destination that gave no status of its own."""
_SLOW_STATUS = 504


class Order(msgspec.Struct, frozen=True):
    """What a client wants served, and for whom."""

    caller: Caller
    inbound: Inbound
    body: HeldBody
    counts: bool = False
    """Whether its tokens are to be counted, and no answer given."""
    loss: Loss = Loss.WARN


class Delivery(msgspec.Struct, frozen=True):
    """A destination's answer, good enough to relay."""

    answer: UpstreamAnswer
    ticket: Ticket
    sent_at: Seconds
    body_bytes: int
    hide_usage: bool
    """The usage chunk was our wish, not the client's."""
    way_back: WayBack | None = None
    """How the answer comes to be the client's, where the destination speaks another API."""
    is_foreign_count: bool = False
    """A count of tokens as another API writes it."""


class Estimated(msgspec.Struct, frozen=True):
    """A count of tokens that nobody made."""

    tokens: int


@dataclass(frozen=True, slots=True)
class _Failure:
    """An attempt that came to nothing, and what the client is told unless another does better."""

    told: Refusal | ErrorAnswer
    is_final: bool = False
    is_uncounted: bool = False
    """The destination does not count tokens."""


class Dispatch:
    """One request's way to an answer."""

    def __init__(self, outside: Outside, options: GatewayOptions, record: Record, order: Order) -> None:
        self._outside, self._options, self._record, self._order = outside, options, record, order
        self._failed: set[LocalTarget | ProviderTarget] = set()
        self._ticket: Ticket | None = None
        self._answer: UpstreamAnswer | None = None

    async def run(self, exchange: Exchange) -> Delivery | Estimated | Refusal | ErrorAnswer:
        """Try destinations until one answers, the picker has none left or the attempts are used up."""
        body = self._order.body
        if not body.take_arrived(exchange):
            await body.receive(exchange)
        placed = await self._place()
        if placed.picked.destination is None:
            return self._refused(placed.picked)
        outcome = await self._attempt(placed, placed.picked.destination)
        if isinstance(outcome, _Failure):
            outcome = await self._again(outcome)
        if isinstance(outcome, _Failure) and self._order.counts and outcome.is_uncounted:
            with suppress(BadBody):
                return Estimated(estimate(body.whole, self._order.inbound.api))
        body.release()
        return outcome if isinstance(outcome, Delivery) else outcome.told

    async def _again(self, outcome: Delivery | _Failure) -> Delivery | _Failure:
        """Try elsewhere for as long as that may help."""
        for _ in range(1, self._options.attempts_max):
            if isinstance(outcome, Delivery) or outcome.is_final:
                break
            outcome = await self._elsewhere(outcome)
        return outcome

    async def _elsewhere(self, failure: _Failure) -> Delivery | _Failure:
        """Pick once more; what has failed so far stands when there is nowhere else to go."""
        try:
            placed = await self._place()
        except KinferenceError as error:
            _log.info("%s: no further attempt: %s", self._record.request_id, error)
            return replace(failure, is_final=True)
        destination = placed.picked.destination
        if destination is None:
            return replace(failure, is_final=True)
        if destination in self._failed:
            self._open(placed.picked).abort(AbortReason.NOT_DISPATCHED, "picked again right after it failed")
            return failure
        return await self._attempt(placed, destination)

    async def close(self) -> None:
        """Close whatever is still open, the destination's connection first."""
        try:
            if self._answer is not None:
                await self._answer.close()
        finally:
            if self._ticket is not None:
                self._ticket.abandon()

    async def _place(self) -> Placed:
        order = self._order
        arguments = PickArguments(
            stream_id=_NO_STREAM,
            tenant=order.caller.tenant,
            client_request_id=order.inbound.request_id,
            qos=order.caller.qos,
            request_path=order.inbound.path,
            failed=frozenset(self._failed) if self._failed else _NOWHERE,
            attempts_left=max(self._options.attempts_max - self._record.attempts, 1),
            translates=True,
            loss=order.loss,
        )
        placed = await self._outside.picker.place(order.body.whole, arguments)
        order.body.placed()
        self._record.picked = placed.picked
        self._record.model = placed.picked.requested_model or self._record.model
        return placed

    def _refused(self, picked: PickResult) -> Refusal:
        models = self._outside.directory.models()
        is_known = any(model.matches(picked.requested_model) for model in models)
        return errors.refusal_of_pick(picked, model_known=is_known)

    def _open(self, picked: PickResult) -> Ticket:
        self._ticket = Ticket(self._outside.picker, picked.response_id)
        return self._ticket

    async def _attempt(self, placed: Placed, destination: LocalTarget | ProviderTarget) -> Delivery | _Failure:
        record, ticket = self._record, self._open(placed.picked)
        record.attempts += 1
        self._failed.add(destination)  # unless it answers, in which case nobody asks
        leg = leg_to(destination, self._order.inbound, self._outside.directory)
        if leg is None:
            is_ours = isinstance(destination, ProviderTarget)  # an endpoint may just have left the fleet
            reason = AbortReason.BACKEND_UNRESOLVED if is_ours else AbortReason.NOT_DISPATCHED
            ticket.abort(reason, "no route is known to the destination")
            return self._failure("unresolved", Refusal(errors.UPSTREAM_BROKEN, "the destination has no known route"))
        record.endpoint = leg.name
        try:
            delivery = await self._ask(leg, placed, ticket)
            if delivery is None:
                delivery = await self._ask_in_chat(destination, placed, ticket)
        except BadBody as error:
            ticket.abort(AbortReason.NOT_DISPATCHED, "the body could not be translated")
            return self._failure("untranslatable", Refusal(errors.BAD_REQUEST, str(error)), is_final=True)
        return delivery

    async def _ask(self, leg: Leg, placed: Placed, ticket: Ticket) -> Delivery | _Failure | None:
        """Send what the picker gave; None where an engine has no such path. Raises BadBody."""
        order, body, clock = self._order, placed.body, self._outside.clock
        if leg.may_lack and self._outside.gaps.lacks(Address(leg.name), order.inbound.path, clock.now()):
            return None
        way_back = None if leg.api is order.inbound.api else self._way_back(leg, placed)
        if way_back is None and placed.usage is not StreamUsage.SETTLED and not order.counts:
            body = self._with_usage(placed)
        is_foreign = order.counts and leg.api.shape is not order.inbound.api
        sent_at = clock.now()
        outcome = await self._send(leg, body, ticket, sent_at)
        if outcome is None or isinstance(outcome, _Failure):
            return outcome
        return Delivery(outcome, ticket, sent_at, len(placed.body), body is not placed.body, way_back, is_foreign)

    async def _ask_in_chat(
        self, destination: LocalTarget | ProviderTarget, placed: Placed, ticket: Ticket
    ) -> Delivery | _Failure:
        """Ask an engine that lacks the client's API in the one that every engine has. Raises BadBody."""
        order = self._order
        assert isinstance(destination, LocalTarget), "only an engine lacks a path"
        clock = self._outside.clock
        self._outside.gaps.note(destination.address, order.inbound.path, clock.now())
        leg = chat_leg_to(destination, order.inbound, self._outside.directory)
        if leg is None:
            ticket.abort(AbortReason.NOT_DISPATCHED, "no route is known to the destination")
            return self._failure("unresolved", Refusal(errors.UPSTREAM_BROKEN, "the destination has no known route"))
        way = Way(order.inbound.api, leg.api, self._record.model, order.loss)
        body, way_back = (count_request(placed.body, way), None) if order.counts else in_chat(placed.body, way)
        sent_at = clock.now()
        outcome = await self._send(leg, body, ticket, sent_at)
        assert outcome is not None, "there is nothing else to ask it for"
        if isinstance(outcome, _Failure):
            return outcome
        return Delivery(outcome, ticket, sent_at, len(placed.body), False, way_back, order.counts)

    def _way_back(self, leg: Leg, placed: Placed) -> WayBack | None:
        order = self._order
        if order.counts:
            return None
        if isinstance(placed.way_back, WayBack):
            return known_way_back(placed.way_back, leg.api, self._record.model)
        inbound = order.inbound
        streams = detect.streams_by_path(inbound.path)
        way = Way(inbound.api, leg.api, self._record.model, order.loss, streams)
        return way_back(order.body.whole, placed.body, way)

    def _with_usage(self, placed: Placed) -> bytes:
        """Ask for a stream's usage where the client did not, so that every answer can be accounted for."""
        body, usage = placed.body, placed.usage
        try:
            if usage is None:
                usage = detect.stream_usage(self._order.inbound.api, body)
            if usage is StreamUsage.NOT_ASKED:
                return patch.add_include_usage(body)
            return body if usage is StreamUsage.SETTLED else patch.set_include_usage(body)
        except BadBody:  # the picker found no fault with it, so the destination shall judge
            return body

    async def _send(self, leg: Leg, body: bytes, ticket: Ticket, sent_at: Seconds) -> UpstreamAnswer | _Failure | None:
        fields = leg.headers
        if leg.aws is not None:
            signable = Signable("POST", leg.origin, leg.target, (body,))
            fields = (*fields, *signature(signable, leg.aws, AWS_SERVICE, self._outside.clock.wall()))
        request = UpstreamRequest("POST", leg.origin, leg.target, fields, (body,), self._options.timeouts)
        ticket.is_dispatched = True
        outcome: UpstreamAnswer | ErrorAnswer
        is_missing = False
        try:
            self._answer = answer = await self._outside.upstream.send(request)
            if verdict.is_success(answer.status):
                outcome = await self._opened(answer, leg)
            else:
                outcome = await verdict.read_error(answer, leg)
                is_missing = leg.may_lack and verdict.lacks_path(outcome)
        except (UpstreamUnreachable, UpstreamCut, UpstreamTimeout) as error:
            return self._no_answer(error, ticket, self._waited(sent_at))
        waited = self._waited(sent_at)
        if is_missing:
            return None
        return self._error_answer(outcome, leg, ticket, waited) if isinstance(outcome, ErrorAnswer) else outcome

    def _waited(self, sent_at: Seconds) -> Seconds:
        """How long the destination took, none of which is time of ours."""
        waited = self._outside.clock.now() - sent_at
        self._record.upstream_s += waited
        return waited

    async def _opened(self, answer: UpstreamAnswer, leg: Leg) -> UpstreamAnswer | ErrorAnswer:
        """Read the beginning of an answer, as long as the client can wait for its head. Raises as the answer does."""
        self._answer = opening = Opening(answer, is_read=leg.api is not self._order.inbound.api)
        if not opening.is_stream:
            await opening.begin()
            return opening
        shape = Api.OPENAI_CHAT if leg.api is Api.OPENAI_COMPLETIONS else leg.api.shape
        first = await opening.first_event(shape, self._options.keep_alive)
        error = None if first is None else error_in(first, shape)
        if error is None:
            return opening
        await opening.close()
        return verdict.cleaned(error, leg)

    def _no_answer(self, error: KinferenceError, ticket: Ticket, waited: Seconds) -> _Failure:
        _log.warning("%s: %s", self._record.request_id, error)
        if isinstance(error, NoConnectionLeft):
            ticket.abort(AbortReason.NOT_DISPATCHED, "no further connection can be opened")
            told = Refusal(errors.OVERLOADED, "the gateway can open no further connection at the moment")
            return self._failure("no_connection_left", told, is_final=True)
        if isinstance(error, UpstreamTimeout):
            ticket.began(waited, _SLOW_STATUS)
            ticket.abort(AbortReason.UNSPECIFIED, "the destination stayed silent")
            told = Refusal(errors.UPSTREAM_SLOW, "the destination did not answer in time")
            return self._failure("timeout", told, is_final=True)
        ticket.began(waited, _UNREACHABLE_STATUS)
        was_reached = isinstance(error, UpstreamCut)
        reason = AbortReason.UNSPECIFIED if was_reached else AbortReason.NOT_DISPATCHED
        ticket.abort(reason, "the destination gave no answer")
        what = "broke off before its answer began" if was_reached else "could not be reached"
        return self._failure("unreachable", Refusal(errors.UPSTREAM_BROKEN, f"the destination {what}"))

    def _error_answer(self, error: ErrorAnswer, leg: Leg, ticket: Ticket, waited: Seconds) -> _Failure:
        blame = verdict.blame(error, leg)
        ticket.began(waited, error.status)
        is_ours = leg.is_provider and blame in (Blame.CREDENTIAL, Blame.ACCOUNT)
        reason = AbortReason.BACKEND_UNAUTHORIZED if is_ours else AbortReason.UNSPECIFIED
        ticket.abort(reason, f"the destination answered {error.status}")
        told = verdict.told_to_client(error, blame)
        if leg.api is not self._order.inbound.api and isinstance(told, ErrorAnswer):
            told = verdict.retold(told)
        if blame is Blame.CLIENT:
            return _Failure(told, is_final=True, is_uncounted=verdict.lacks_path(error))
        return self._failure(blame.name.lower(), told)

    def _failure(self, kind: str, told: Refusal | ErrorAnswer, *, is_final: bool = False) -> _Failure:
        self._outside.metrics.count(GATEWAY_FAILURES, kind)
        return _Failure(told, is_final)
