"""Finding a destination that answers: place and send, and again elsewhere while the client has seen nothing.

A `Dispatch` is one client's request from its body to the head of an answer. Whatever it leaves open (a ticket, an
answer) is closed by `close`, which its owner calls however the request ends.
"""

import logging
from collections.abc import Awaitable
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from kinference.errors import KinferenceError, UpstreamCut, UpstreamTimeout, UpstreamUnreachable
from kinference.gateway import verdict
from kinference.gateway.access_log import Record
from kinference.gateway.attempts import Attempts, Delivery, Failure, Order, Sending
from kinference.gateway.errors import Refusal
from kinference.gateway.headers import upstream_id_of
from kinference.gateway.ingress import receive
from kinference.gateway.opening import Opening, error_in, nothing
from kinference.gateway.options import GatewayOptions, Outside
from kinference.gateway.verdict import ErrorAnswer
from kinference.ports import LocalTarget, Placed, ProviderTarget, UpstreamAnswer
from kinference.shapes.counting import estimate
from kinference.shapes.scan import BadBody
from kinference.vocabulary import AbortReason, Api
from kinference.wire.exchange import Exchange

_log = logging.getLogger(__name__)


class Estimated(msgspec.Struct, frozen=True):
    """A count of tokens that nobody made."""

    tokens: int


class Dispatch:
    """One request's way to an answer."""

    def __init__(self, outside: Outside, options: GatewayOptions, record: Record, order: Order) -> None:
        self._upstream, self._options = outside.upstream, options
        self._record, self._order = record, order
        self._attempts = Attempts(outside, options, record, order)
        self._answer: UpstreamAnswer | None = None

    async def run(self, exchange: Exchange) -> Delivery | Estimated | Refusal | ErrorAnswer:
        """Try destinations until one answers, the picker has none left or the attempts are used up."""
        body = self._order.body
        if not body.take_arrived(exchange):
            await receive(body, exchange)
        placed = self._attempts.place()
        if not isinstance(placed, Placed):
            placed = await self._late(placed)
        destination = placed.picked.destination
        if destination is None:
            return self._attempts.refused(placed.picked)
        outcome = await self._attempt(placed, destination)
        if isinstance(outcome, Failure):
            outcome = await self._again(outcome)
            if isinstance(outcome, Failure) and self._order.counts and outcome.is_uncounted:
                with suppress(BadBody):
                    return Estimated(estimate(body.whole, self._order.inbound.api))
        body.release()
        return outcome if isinstance(outcome, Delivery) else outcome.told

    async def _again(self, outcome: Delivery | Failure) -> Delivery | Failure:
        """Try elsewhere for as long as that may help."""
        for _ in range(1, self._options.attempts_max):
            if isinstance(outcome, Delivery) or outcome.is_final:
                break
            outcome = await self._elsewhere(outcome)
        return outcome

    async def _elsewhere(self, failure: Failure) -> Delivery | Failure:
        """Pick once more; what has failed so far stands when there is nowhere else to go."""
        try:
            placed = self._attempts.place()
            if not isinstance(placed, Placed):
                placed = await self._late(placed)
        except KinferenceError as error:
            _log.info("%s: no further attempt: %s", self._record.request_id, error)
            return replace(failure, is_final=True)
        destination = placed.picked.destination
        if destination is None:
            return replace(failure, is_final=True)
        if self._attempts.has_failed(destination):
            ticket = self._attempts.open(placed.picked)
            ticket.abort(AbortReason.NOT_DISPATCHED, "picked again right after it failed")
            return failure
        return await self._attempt(placed, destination)

    async def close(self) -> None:
        """Close whatever is still open, the destination's connection first."""
        try:
            if self._answer is not None:
                await self._answer.close()
        finally:
            ticket = self._attempts.ticket
            if ticket is not None:
                ticket.abandon()

    async def _late(self, placing: Awaitable[Placed]) -> Placed:
        placed = await placing
        self._attempts.placed(placed)
        return placed

    async def _attempt(self, placed: Placed, destination: LocalTarget | ProviderTarget) -> Delivery | Failure:
        attempts = self._attempts
        try:
            sending = attempts.prepare(placed, destination)
            outcome = await self._send(sending) if isinstance(sending, Sending) else sending
            if outcome is None:
                sending = attempts.prepare_in_chat(placed, destination)
                outcome = await self._send(sending) if isinstance(sending, Sending) else sending
        except BadBody as error:
            return attempts.untranslatable(error)
        assert outcome is not None, "there is nothing else to ask it for"
        return outcome

    async def _send(self, sending: Sending) -> Delivery | Failure | None:
        """Send what was prepared; None where an engine has no such path."""
        attempts, back = self._attempts, None
        try:
            self._answer = answer = await self._upstream.send(sending.request)
            self._record.upstream_id = upstream_id_of(answer.headers) if sending.leg.is_provider else ""
            if verdict.is_success(answer.status):
                back = attempts.own_way_back(answer, sending)
                is_read = back is not None or sending.leg.api is not self._order.inbound.api
                self._answer = opening = Opening(answer, is_read=is_read)
                outcome = opening if opening.begin_at_once() else await self._opened(opening, sending)
            else:
                outcome = await verdict.read_error(answer, sending.leg)
                if attempts.lacks_path(outcome, sending):
                    return None
        except (UpstreamUnreachable, UpstreamCut, UpstreamTimeout) as error:
            if self._answer is not None:  # which may go on, where it is only not what it should be
                await self._answer.close()
            return attempts.no_answer(error, sending)
        if isinstance(outcome, ErrorAnswer):
            return attempts.answered_with_error(outcome, sending)
        return attempts.answered(outcome, sending, back)

    async def _opened(self, opening: Opening, sending: Sending) -> UpstreamAnswer | ErrorAnswer:
        """Read the beginning of an answer, as long as the client can wait for its head. Raises as the answer does."""
        if not opening.is_stream:
            await opening.begin()
            return opening
        leg = sending.leg
        shape = Api.OPENAI_CHAT if leg.api is Api.OPENAI_COMPLETIONS else leg.api.shape
        first = await opening.first_event(shape, self._options.keep_alive)
        error = None if first is None else error_in(first, shape)
        if error is None and first is not None and sending.way_back is not None and await opening.is_nothing(shape):
            error = nothing()
        if error is None:
            return opening
        await opening.close()
        return verdict.cleaned(error, leg)
