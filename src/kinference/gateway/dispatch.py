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
from kinference.gateway.beginning import Overture
from kinference.gateway.errors import Refusal
from kinference.gateway.headers import upstream_id_of
from kinference.gateway.ingress import receive
from kinference.gateway.opening import Opening, error_in, nothing
from kinference.gateway.options import GatewayOptions, Outside
from kinference.gateway.verdict import ErrorAnswer
from kinference.ports import LocalTarget, Placed, Placing, ProviderTarget, UpstreamAnswer, UpstreamRequest
from kinference.shapes.counting import estimate
from kinference.shapes.scan import BadBody
from kinference.shapes.translate import WayBack
from kinference.structs import Frozen
from kinference.vocabulary import AbortReason, Api
from kinference.wire.exchange import Exchange
from kinference.wire.over import OVER

_log = logging.getLogger(__name__)


class Estimated(msgspec.Struct, frozen=True):
    """A count of tokens that nobody made."""

    tokens: int


class Begun(Frozen, frozen=True):
    """An answer that is no error."""

    opening: Opening
    back: WayBack | None
    is_ready: bool
    """Whether all of it is here; else its beginning is to be waited for."""


class Dispatch:
    """One request's way to an answer."""

    def __init__(self, outside: Outside, options: GatewayOptions, record: Record, order: Order) -> None:
        self._upstream, self._options = outside.upstream, options
        self._record, self.order = record, order
        self._attempts = Attempts(outside, options, record, order)
        self._answer: UpstreamAnswer | None = None
        self._placed: Placed | Placing | None = None
        self._prepared: Sending | Failure | None = None
        self._is_prepared = False
        self._came: UpstreamAnswer | KinferenceError | None = None
        self._begun: Begun | None = None
        """What has been done without waiting, for `run` to go on from."""

    def begin(self, exchange: Exchange) -> UpstreamRequest | None:
        """The first attempt, up to what its destination is asked; None where something is to be waited for before, or
        nobody is to be asked: then `run` goes on.
        """
        if not self.order.body.take_arrived(exchange):
            return None
        self._placed = placed = self._attempts.place()
        if not isinstance(placed, Placed) or placed.picked.destination is None:
            return None
        try:
            sending = self._attempts.prepare(placed, placed.picked.destination)
        except BadBody as error:
            sending = self._attempts.untranslatable(error)
        self._prepared, self._is_prepared = sending, True
        return sending.request if isinstance(sending, Sending) else None

    def take_up(self, came: UpstreamAnswer | KinferenceError | None) -> Delivery | None:
        """The first destination has answered, or failed, or is to be asked anew. Its delivery, where that is all here;
        else `run` goes on.
        """
        self._came, sending = came, self._prepared
        assert isinstance(sending, Sending), "what is answered was asked"
        if came is None or isinstance(came, KinferenceError):
            return None
        self._answer = came
        self._note(came, sending)
        if not verdict.is_success(came.status):
            return None
        try:
            self._begun = begun = self._begin(came, sending)
        except UpstreamCut as error:
            self._came = error
            return None
        return self._delivered(begun, sending) if begun.is_ready else None

    def stream(self) -> Opening | None:
        """The stream that the first destination has begun, where its client is sent it as it comes: its first event is
        to be looked for, then it is `opened`.
        """
        begun, sending = self._begun, self._prepared
        if begun is None or not begun.opening.is_stream or begun.back is not None:
            return None
        if not isinstance(sending, Sending) or sending.way_back is not None:
            return None
        begun.opening.begin_stream(_shape(sending.leg.api), self._options.keep_alive)
        return begun.opening

    def opened(self, overture: Overture) -> Delivery | None:
        """A stream has said something of its answer, or more than can be held. None where `run` is to see to that."""
        begun, sending, first = self._begun, self._prepared, overture.first
        assert begun is not None, "it was begun"
        assert isinstance(sending, Sending), "what is answered was asked"
        if overture.failure is not None or (first is not None and error_in(first, _shape(sending.leg.api)) is not None):
            return None
        return self._delivered(begun, sending)

    def _delivered(self, begun: Begun, sending: Sending) -> Delivery:
        self._placed = self._prepared = self._begun = None  # they hold the question as well
        self.order.body.release()
        return self._attempts.answered(begun.opening, sending, begun.back)

    async def run(self, exchange: Exchange) -> Delivery | Estimated | Refusal | ErrorAnswer:
        """Try destinations until one answers, the picker has none left or the attempts are used up."""
        body, placed, self._placed = self.order.body, self._placed, None
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
            if isinstance(outcome, Failure) and self.order.counts and outcome.is_uncounted:
                with suppress(BadBody):
                    return Estimated(estimate(body.whole, self.order.inbound.api))
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

    def close(self) -> Awaitable[None]:
        """Close whatever is still open, the destination's connection first."""
        closing = OVER if self._answer is None else self._answer.close()
        if closing is not OVER:
            return self._close_after(closing)
        self._abandon()
        return OVER

    async def _close_after(self, closing: Awaitable[None]) -> None:
        try:
            await closing
        finally:
            self._abandon()

    def _abandon(self) -> None:
        placing, self._placed = self._placed, None
        if placing is not None and not isinstance(placing, Placed):
            placing.close()  # the process ends before it was waited for
        ticket = self._attempts.ticket
        if ticket is not None:
            ticket.abandon()

    async def _late(self, placing: Placing) -> Placed:
        placed = await placing
        self._attempts.placed(placed)
        return placed

    async def _attempt(self, placed: Placed, destination: LocalTarget | ProviderTarget) -> Delivery | Failure:
        attempts = self._attempts
        try:
            sending = self._prepared if self._is_prepared else attempts.prepare(placed, destination)
            self._prepared, self._is_prepared = None, False
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
            self._note(answer, sending)
            if verdict.is_success(answer.status):
                begun, self._begun = self._begun or self._begin(answer, sending), None
                back, opening = begun.back, begun.opening
                outcome = opening if begun.is_ready else await self._opened(opening, sending)
            else:
                self._answer = answer
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

    async def _answer_to(self, sending: Sending) -> UpstreamAnswer:
        came, self._came = self._came, None
        if came is None:
            return await self._upstream.send(sending.request)
        if isinstance(came, KinferenceError):
            raise came
        return came

    def _note(self, answer: UpstreamAnswer, sending: Sending) -> None:
        self._record.upstream_id = upstream_id_of(answer.headers) if sending.leg.is_provider else ""

    def _begin(self, answer: UpstreamAnswer, sending: Sending) -> Begun:
        """Begin what is no error, and what is known to be here is read. Raises UpstreamCut."""
        self._answer = answer
        back = self._attempts.own_way_back(answer, sending)
        is_read = back is not None or sending.leg.api is not self.order.inbound.api
        self._answer = opening = Opening(answer, is_read=is_read)
        return Begun(opening, back, opening.begin_at_once())

    async def _opened(self, opening: Opening, sending: Sending) -> UpstreamAnswer | ErrorAnswer:
        """Read the beginning of an answer, as long as the client can wait for its head. Raises as the answer does."""
        if not opening.is_stream:
            await opening.begin()
            return opening
        leg = sending.leg
        shape = _shape(leg.api)
        first = await opening.first_event(shape, self._options.keep_alive)
        error = None if first is None else error_in(first, shape)
        if error is None and first is not None and sending.way_back is not None and await opening.is_nothing(shape):
            error = nothing()
        if error is None:
            return opening
        await opening.close()
        return verdict.cleaned(error, leg)


def _shape(api: Api) -> Api:
    """Of the events of its streams."""
    return Api.OPENAI_CHAT if api is Api.OPENAI_COMPLETIONS else api.shape
