"""What each attempt of a request asks for, sends and comes to. Decides only: `dispatch` waits."""

import logging
from typing import Final

from kinference.errors import KinferenceError, NoConnectionLeft, UpstreamCut, UpstreamTimeout
from kinference.gateway import errors, verdict
from kinference.gateway.access_log import Record
from kinference.gateway.auth import Caller
from kinference.gateway.backends import Inbound, Leg, chat_leg_to, leg_to
from kinference.gateway.errors import Refusal
from kinference.gateway.held_body import HeldBody
from kinference.gateway.options import GatewayOptions, Outside
from kinference.gateway.ticket import Ticket
from kinference.gateway.translation import in_chat, known_way_back, own_way_back, way_back
from kinference.gateway.verdict import Blame, ErrorAnswer
from kinference.ids import Address, Seconds, StreamId
from kinference.observe.metrics import GATEWAY_FAILURES
from kinference.ports import (
    LocalTarget,
    PickArguments,
    PickResult,
    Placed,
    Placing,
    ProviderTarget,
    UpstreamAnswer,
    UpstreamRequest,
)
from kinference.shapes import detect, mcp, patch
from kinference.shapes.counting import count_request
from kinference.shapes.scan import BadBody
from kinference.shapes.translate import Way, WayBack
from kinference.structs import Frozen
from kinference.vocabulary import AbortReason, Api, Loss, StreamUsage
from kinference.wire.fields import Table
from kinference.wire.sigv4 import Signable, signature

_log: Final = logging.getLogger(__name__)

_NOWHERE: Final[frozenset[LocalTarget | ProviderTarget]] = frozenset()
_SETTLED: Final = StreamUsage.SETTLED
"""Read once: Python 3.11 finds a member of an enum by a hook of its metaclass, at ten times the price of a constant."""
_EMBEDDINGS: Final = Api.OPENAI_EMBEDDINGS
_ANTHROPIC: Final = Api.ANTHROPIC_MESSAGES
_NO_STREAM: Final = StreamId(0)
"""The body comes with the call."""
AWS_SERVICE: Final = "bedrock"
_UNREACHABLE_STATUS: Final = 502
"""Reported for a destination that gave no status of its own."""
_SLOW_STATUS: Final = 504


class Order:
    """What a client wants served, and for whom."""

    def __init__(
        self, caller: Caller, inbound: Inbound, body: HeldBody, counts: bool = False, loss: Loss = Loss.WARN
    ) -> None:
        """`counts`: its tokens are to be counted, and no answer given."""
        self.caller: Final = caller
        self.inbound: Final = inbound
        self.body: Final = body
        self.counts: Final = counts
        self.loss: Final = loss


class Sending:
    """A request as it goes to one destination, and what is to be known when its answer comes, as `Delivery` has it."""

    hide_usage = False
    way_back: WayBack | None = None
    is_foreign_count = False
    streams: bool | None = None
    """Whether the client asked for a stream; None where nobody has looked."""

    def __init__(self, request: UpstreamRequest, leg: Leg, ticket: Ticket, sent_at: Seconds, body_bytes: int) -> None:
        self.request: Final = request
        self.leg: Final = leg
        self.ticket: Final = ticket
        self.sent_at: Final = sent_at
        self.body_bytes: Final = body_bytes


class Delivery:
    """A destination's answer, good enough to relay."""

    hide_usage = False
    """The usage chunk was our wish, not the client's."""
    way_back: WayBack | None = None
    """How the answer comes to be the client's, where the destination speaks another API."""
    is_foreign_count = False
    """A count of tokens as another API writes it."""
    whole: bytes | None = None
    """All of it, where it has been taken."""
    told: Table | None = None
    """The fields of its head, where they have been looked at."""

    def __init__(self, answer: UpstreamAnswer, ticket: Ticket, sent_at: Seconds, body_bytes: int) -> None:
        self.answer: Final = answer
        self.ticket: Final = ticket
        self.sent_at: Final = sent_at
        self.body_bytes: Final = body_bytes


class Failure(Frozen, frozen=True):
    """An attempt that came to nothing, and what the client is told unless another does better."""

    told: Refusal | ErrorAnswer
    is_final: bool = False
    is_uncounted: bool = False
    """The destination does not count tokens."""


class Attempts:
    """One request's attempts, one after the other."""

    def __init__(self, outside: Outside, options: GatewayOptions, record: Record, order: Order) -> None:
        self._outside, self._options, self._record, self._order = outside, options, record, order
        self._failed: set[LocalTarget | ProviderTarget] = set()
        self._waits: list[Seconds | None] = []  # what each that was asked too often asked for; None: failed otherwise
        self.ticket: Ticket | None = None
        """Of the last attempt."""

    def arguments(self) -> PickArguments:
        """What the picker is asked for."""
        order = self._order
        return PickArguments(
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

    def place(self) -> Placed | Placing:
        """Ask the picker. Where it has to be waited for, its answer is to be told by `placed`."""
        placed = self._outside.picker.place(self._order.body.whole, self.arguments())
        if isinstance(placed, Placed):
            self.placed(placed)
        return placed

    def placed(self, placed: Placed) -> None:
        """The picker has answered."""
        self._order.body.placed()
        picked, record = placed.picked, self._record
        record.picked = picked
        record.model = picked.requested_model or record.model

    def refused(self, picked: PickResult) -> Refusal:
        """It has nowhere to go."""
        models = self._outside.directory.models()
        is_known = any(model.matches(picked.requested_model) for model in models)
        return errors.refusal_of_pick(picked, model_known=is_known)

    def has_failed(self, destination: LocalTarget | ProviderTarget) -> bool:
        """Whether this request has been there in vain."""
        return destination in self._failed

    def open(self, picked: PickResult) -> Ticket:
        """A pick is to be answered for."""
        ticket = self.ticket = Ticket(self._outside.picker, picked.response_id)
        return ticket

    # --- on the way out --------------------------------------------------------------------------

    def prepare(self, placed: Placed, destination: LocalTarget | ProviderTarget) -> Sending | Failure | None:
        """What goes to a picked destination; None where it is an engine that has no such path. Raises BadBody."""
        record, order, ticket = self._record, self._order, self.open(placed.picked)
        record.attempts += 1
        self._failed.add(destination)  # unless it answers, in which case nobody asks
        leg = leg_to(destination, order.inbound, self._outside.directory)
        if leg is None:
            is_ours = isinstance(destination, ProviderTarget)  # an endpoint may just have left the fleet
            return self._unresolved(AbortReason.BACKEND_UNRESOLVED if is_ours else AbortReason.NOT_DISPATCHED)
        record.endpoint = leg.name
        if leg.may_lack and self._outside.gaps.lacks(Address(leg.name), order.inbound.path, self._outside.clock.now()):
            return None
        body = placed.body
        back = None if leg.api is order.inbound.api else self._way_back(leg, placed)
        if back is None and placed.usage is not _SETTLED and not order.counts:
            body = self._with_usage(placed)
        is_foreign = order.counts and leg.api.shape is not order.inbound.api
        sent_at = self._outside.clock.now()
        request = self._request(leg, body)
        ticket.is_dispatched = True
        sending = Sending(request, leg, ticket, sent_at, len(placed.body))
        sending.hide_usage = body is not placed.body
        sending.way_back, sending.is_foreign_count, sending.streams = back, is_foreign, placed.streams
        return sending

    def prepare_in_chat(self, placed: Placed, destination: LocalTarget | ProviderTarget) -> Sending | Failure:
        """What goes to an engine that lacks the client's API, in the one that every engine has. Raises BadBody."""
        order, clock, ticket = self._order, self._outside.clock, self.ticket
        assert ticket is not None, "it was opened when the engine was first asked"
        assert isinstance(destination, LocalTarget), "only an engine lacks a path"
        self._outside.gaps.note(destination.address, order.inbound.path, clock.now())
        leg = chat_leg_to(destination, order.inbound, self._outside.directory)
        if leg is None:
            return self._unresolved(AbortReason.NOT_DISPATCHED)
        model, extends = self._record.model, leg.extends_chat
        way = Way(order.inbound.api, leg.api, model, order.loss, extends_chat=extends, yields=True)
        back: WayBack | None = None
        if order.counts:
            body = count_request(placed.body, way)
        else:
            body, back = in_chat(placed.body, way)
        request = self._request(leg, body)
        ticket.is_dispatched = True
        sending = Sending(request, leg, ticket, clock.now(), len(placed.body))
        sending.way_back, sending.is_foreign_count = back, order.counts
        return sending

    def _way_back(self, leg: Leg, placed: Placed) -> WayBack | None:
        order = self._order
        if order.counts:
            return None
        known = placed.way_back
        if isinstance(known, WayBack):
            return known_way_back(known, leg.api, self._record.model)
        inbound = order.inbound
        streams = detect.streams_by_path(inbound.path)
        way = Way(inbound.api, leg.api, self._record.model, order.loss, streams, leg.extends_chat)
        return way_back(order.body.whole, placed.body, way)

    def _with_usage(self, placed: Placed) -> bytes:
        """Ask for a stream's usage where the client did not, so that every answer can be accounted for."""
        body, usage = placed.body, placed.usage
        try:
            if usage is None:
                usage = detect.stream_usage(self._order.inbound.api, body)
            if usage is StreamUsage.NOT_ASKED:
                return patch.add_include_usage(body)
            return body if usage is _SETTLED else patch.set_include_usage(body)
        except BadBody:  # the picker found no fault with it, so the destination shall judge
            return body

    def _request(self, leg: Leg, body: bytes) -> UpstreamRequest:
        fields = leg.headers
        if leg.api is _ANTHROPIC and leg.api is not self._order.inbound.api and mcp.is_in(body):
            fields = (*fields, (b"anthropic-beta", mcp.BETA))
        if leg.aws is not None:
            signable = Signable("POST", leg.origin, leg.target, (body,))
            fields = (*fields, *signature(signable, leg.aws, AWS_SERVICE, self._outside.clock.wall()))
        return UpstreamRequest("POST", leg.origin, leg.target, fields, (body,), self._options.timeouts)

    # --- what came of it -------------------------------------------------------------------------

    def _waited(self, sending: Sending) -> Seconds:
        """How long the destination took, none of which is time of ours."""
        waited = self._outside.clock.now() - sending.sent_at
        self._record.upstream_s += waited
        return waited

    def own_way_back(self, sending: Sending, *, came: bool) -> WayBack | None:
        """How an answer in the client's own API comes to be what it asked for, where it came as a stream and it is
        wanted whole or the other way round; None where it is. Raises UpstreamCut where it cannot.
        """
        order, api = self._order, self._order.inbound.api
        if sending.way_back is not None or order.counts or api is _EMBEDDINGS:
            return None
        if sending.streams is None:
            is_other = detect.asked_otherwise(api, order.inbound.path, order.body.whole, is_stream=came)
        else:
            is_other = sending.streams is not came
        if not is_other:
            return None
        way = Way(api, api, self._record.model, streams=not came)
        return own_way_back(order.body.whole, way, wants_usage=not sending.hide_usage)

    def answered(self, answer: UpstreamAnswer, sending: Sending, back: WayBack | None = None) -> Delivery:
        """The destination's answer has begun, and is one. `back`, where it is not of the kind that was asked for."""
        self._waited(sending)
        delivery = Delivery(answer, sending.ticket, sending.sent_at, sending.body_bytes)
        delivery.hide_usage, delivery.is_foreign_count = sending.hide_usage, sending.is_foreign_count
        delivery.way_back = back or sending.way_back
        return delivery

    def lacks_path(self, error: ErrorAnswer, sending: Sending) -> bool:
        """Whether an engine says by its status that it has no such path, so that it can be asked by another."""
        if not (sending.leg.may_lack and verdict.lacks_path(error)):
            return False
        self._waited(sending)
        return True

    def answered_with_error(self, error: ErrorAnswer, sending: Sending) -> Failure:
        """The destination's answer is an error."""
        leg, ticket = sending.leg, sending.ticket
        blame = verdict.blame(error, leg)
        ticket.began(self._waited(sending), error.status)
        is_ours = leg.is_provider and blame in (Blame.CREDENTIAL, Blame.ACCOUNT)
        reason = AbortReason.BACKEND_UNAUTHORIZED if is_ours else AbortReason.UNSPECIFIED
        ticket.abort(reason, f"the destination answered {error.status}")
        wall = self._outside.clock.wall()
        told = verdict.told_to_client(error, blame, wall)
        if leg.api is not self._order.inbound.api and isinstance(told, ErrorAnswer):
            told = verdict.retold(told, wall)
        is_limited = error.status == errors.RATE_LIMITED.status
        self._waits.append((verdict.retry_after(error, wall) or 0.0) if is_limited else None)
        if longest := self._longest_wait():
            told = verdict.waiting(told, longest)
        if blame is Blame.CLIENT:
            return Failure(told, is_final=True, is_uncounted=verdict.lacks_path(error))
        return self._failure(blame.name.lower(), told)

    def _longest_wait(self) -> Seconds:
        """What the most patient of several asked for, where all were asked too often; 0 otherwise."""
        waits = [wait for wait in self._waits if wait is not None]
        return max(waits) if 1 < len(waits) == len(self._waits) else 0.0

    def no_answer(self, error: KinferenceError, sending: Sending) -> Failure:
        """The destination gave none."""
        ticket, waited = sending.ticket, self._waited(sending)
        self._waits.append(None)
        _log.warning("%s: %s", self._record.request_id, error)
        if isinstance(error, NoConnectionLeft):
            ticket.abort(AbortReason.NOT_DISPATCHED, "no further connection can be opened")
            told = Refusal(errors.OVERLOADED, "the gateway can open no further connection at the moment")
            return self._failure("no_connection_left", told, is_final=True)
        if isinstance(error, UpstreamTimeout):
            ticket.began(waited, _SLOW_STATUS)
            ticket.abort(AbortReason.UNSPECIFIED, str(error))
            told = Refusal(errors.UPSTREAM_SLOW, "the destination did not answer in time")
            return self._failure("timeout", told, is_final=True)
        ticket.began(waited, _UNREACHABLE_STATUS)
        was_reached = isinstance(error, UpstreamCut)
        reason = AbortReason.UNSPECIFIED if was_reached else AbortReason.NOT_DISPATCHED
        ticket.abort(reason, str(error))
        what = "gave no answer that can be used" if was_reached else "could not be reached"
        return self._failure("unreachable", Refusal(errors.UPSTREAM_BROKEN, f"the destination {what}"))

    def untranslatable(self, error: BadBody) -> Failure:
        """The body cannot be told to the destination."""
        assert self.ticket is not None, "only what was picked is translated"
        self.ticket.abort(AbortReason.NOT_DISPATCHED, "the body could not be translated")
        return self._failure("untranslatable", Refusal(errors.BAD_REQUEST, str(error)), is_final=True)

    def _unresolved(self, reason: AbortReason) -> Failure:
        assert self.ticket is not None, "only what was picked is resolved"
        self.ticket.abort(reason, "no route is known to the destination")
        return self._failure("unresolved", Refusal(errors.UPSTREAM_BROKEN, "the destination has no known route"))

    def _failure(self, kind: str, told: Refusal | ErrorAnswer, *, is_final: bool = False) -> Failure:
        self._outside.metrics.count(GATEWAY_FAILURES, kind)
        return Failure(told, is_final)
