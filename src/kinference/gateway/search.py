"""The search for a destination that answers, where it waits: from where a `Dispatch` has come to without, and elsewhere
while the client has seen nothing.
"""

import logging
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from kinference.errors import KinferenceError, UpstreamCut, UpstreamTimeout, UpstreamUnreachable
from kinference.gateway import verdict
from kinference.gateway.attempts import Delivery, Failure, Sending
from kinference.gateway.dispatch import Dispatch, is_success, shape_of
from kinference.gateway.errors import Refusal
from kinference.gateway.ingress import receive
from kinference.gateway.opening import Opening, error_in, nothing
from kinference.gateway.verdict import ErrorAnswer
from kinference.ports import LocalTarget, Placed, Placing, ProviderTarget, UpstreamAnswer
from kinference.shapes.counting import estimate
from kinference.shapes.scan import BadBody
from kinference.vocabulary import AbortReason
from kinference.wire.exchange import Exchange

_log = logging.getLogger(__name__)


class Estimated(msgspec.Struct, frozen=True):
    """A count of tokens that nobody made."""

    tokens: int


class Search:
    """One request's."""

    def __init__(self, dispatch: Dispatch) -> None:
        self._dispatch = dispatch
        self._attempts, self._order, self._record = dispatch.attempts, dispatch.order, dispatch.record
        self._options, self._upstream = dispatch.options, dispatch.upstream

    async def run(self, exchange: Exchange) -> Delivery | Estimated | Refusal | ErrorAnswer:
        """Try destinations until one answers, the picker has none left or the attempts are used up."""
        dispatch, body = self._dispatch, self._order.body
        placed, dispatch.placed = dispatch.placed, None
        if placed is None:
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

    async def _late(self, placing: Placing) -> Placed:
        placed = await placing
        self._attempts.placed(placed)
        return placed

    async def _attempt(self, placed: Placed, destination: LocalTarget | ProviderTarget) -> Delivery | Failure:
        attempts = self._attempts
        try:
            sending = self._dispatch.prepared if self._dispatch.is_prepared else attempts.prepare(placed, destination)
            self._dispatch.prepared, self._dispatch.is_prepared = None, False
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
            answer = await self._answer_to(sending)
            self._dispatch.note(answer, sending)
            if is_success(answer.status):
                begun, self._dispatch.begun = self._dispatch.begun or self._dispatch.begin_with(answer, sending), None
                back, opening = begun.back, begun.opening
                outcome = opening if begun.is_ready else await self._opened(opening, sending)
            else:
                self._dispatch.answer = answer
                outcome = await verdict.read_error(answer, sending.leg)
                if attempts.lacks_path(outcome, sending):
                    return None
        except (UpstreamUnreachable, UpstreamCut, UpstreamTimeout) as error:
            if self._dispatch.answer is not None:  # which may go on, where it is only not what it should be
                await self._dispatch.answer.close()
            return attempts.no_answer(error, sending)
        if isinstance(outcome, ErrorAnswer):
            return attempts.answered_with_error(outcome, sending)
        return attempts.answered(outcome, sending, back)

    async def _answer_to(self, sending: Sending) -> UpstreamAnswer:
        came, self._dispatch.came = self._dispatch.came, None
        if came is None:
            return await self._upstream.send(sending.request)
        if isinstance(came, KinferenceError):
            raise came
        return came

    async def _opened(self, opening: Opening, sending: Sending) -> UpstreamAnswer | ErrorAnswer:
        """Read the beginning of an answer, as long as the client can wait for its head. Raises as the answer does."""
        if not opening.is_stream:
            await opening.begin()
            return opening
        leg = sending.leg
        shape = shape_of(leg.api)
        first = await opening.first_event(shape, self._options.keep_alive)
        error = None if first is None else error_in(first, shape)
        if error is None and first is not None and sending.way_back is not None and await opening.is_nothing(shape):
            error = nothing()
        if error is None:
            return opening
        await opening.close()
        return verdict.cleaned(error, leg)
