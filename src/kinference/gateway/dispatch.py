"""Finding a destination that answers: place and send, and again elsewhere while the client has seen nothing.

A `Dispatch` is one client's request from its body to the head of an answer. Whatever it leaves open (a ticket, an
answer) is closed by `close`, which its owner calls however the request ends.
"""

from collections.abc import Awaitable
from typing import Final

from kinference.errors import KinferenceError, UpstreamCut
from kinference.gateway.access_log import Record
from kinference.gateway.attempts import Attempts, Delivery, Failure, Order, Sending
from kinference.gateway.beginning import Overture
from kinference.gateway.closing import closed
from kinference.gateway.headers import is_stream, upstream_id_of
from kinference.gateway.opening import Opening, error_in
from kinference.gateway.options import GatewayOptions, Outside
from kinference.ports import Placed, Placing, UpstreamAnswer, UpstreamRequest
from kinference.shapes.scan import BadBody
from kinference.shapes.translate import WayBack
from kinference.vocabulary import Api
from kinference.wire.exchange import Exchange
from kinference.wire.fields import header, table
from kinference.wire.over import OVER

_SUCCESS: Final = 200
_REDIRECT: Final = 300
_COMPLETIONS: Final = Api.OPENAI_COMPLETIONS
_CHAT: Final = Api.OPENAI_CHAT
"""Read once: Python 3.11 finds a member of an enum by a hook of its metaclass, at ten times the price of a constant."""
_OBJECT: Final = b"{"[0]
_ARRAY: Final = b"["[0]


class Begun:
    """An answer that is no error."""

    def __init__(self, opening: Opening, back: WayBack | None, is_ready: bool) -> None:
        """`is_ready`: all of it is here; else its beginning is to be waited for."""
        self.opening: Final = opening
        self.back: Final = back
        self.is_ready: Final = is_ready


class Dispatch:
    """One request's way to an answer."""

    def __init__(self, outside: Outside, options: GatewayOptions, record: Record, order: Order) -> None:
        self.upstream, self.options = outside.upstream, options
        self.record, self.order = record, order
        self.attempts = Attempts(outside, options, record, order)
        self.answer: UpstreamAnswer | None = None
        self.placed: Placed | Placing | None = None
        self.prepared: Sending | Failure | None = None
        self.is_prepared = False
        self.came: UpstreamAnswer | KinferenceError | None = None
        self.begun: Begun | None = None
        """What has been done without waiting, for `run` to go on from."""

    def begin(self, exchange: Exchange) -> UpstreamRequest | None:
        """The first attempt, up to what its destination is asked; None where something is to be waited for before, or
        nobody is to be asked: then `run` goes on.
        """
        if not self.order.body.take_arrived(exchange):
            return None
        self.placed = placed = self.attempts.place()
        if not isinstance(placed, Placed) or placed.picked.destination is None:
            return None
        try:
            sending = self.attempts.prepare(placed, placed.picked.destination)
        except BadBody as error:
            sending = self.attempts.untranslatable(error)
        self.prepared, self.is_prepared = sending, True
        return sending.request if isinstance(sending, Sending) else None

    def take_up(self, came: UpstreamAnswer | KinferenceError | None) -> Delivery | None:
        """The first destination has answered, or failed, or is to be asked anew. Its delivery, where that is all here;
        else `run` goes on.
        """
        self.came, sending = came, self.prepared
        assert isinstance(sending, Sending), "what is answered was asked"
        if came is None or isinstance(came, KinferenceError):
            return None
        self.answer = came
        self.note(came, sending)
        if not is_success(came.status):
            return None
        try:
            plain = self._plain(came, sending)
            if isinstance(plain, Delivery):
                return plain
            self.begun = begun = self.begin_with(came, sending, plain)
        except UpstreamCut as error:
            self.came = error
            return None
        return self._delivered(begun, sending) if begun.is_ready else None

    def _plain(self, answer: UpstreamAnswer, sending: Sending) -> Delivery | bytes | None:
        """The delivery of an answer that goes to its client as it is, and is all here; else what has been taken of it.
        Raises UpstreamCut.
        """
        if sending.way_back is not None or sending.is_foreign_count or sending.leg.api is not self.order.inbound.api:
            return None
        told = table(answer.headers)
        is_streaming = is_stream(told.get(b"content-type"))
        if is_streaming or b"content-encoding" in told:
            return None
        if self.attempts.own_way_back(sending, came=is_streaming) is not None:
            return None
        whole = answer.arrived()
        if not whole or (whole[0] != _OBJECT and whole[0] != _ARRAY):
            return whole
        self._forget()
        delivery = self.attempts.answered(answer, sending)
        delivery.whole, delivery.told = whole, told
        return delivery

    def stream(self) -> Opening | None:
        """The stream that the first destination has begun, where its client is sent it as it comes: its first event is
        to be looked for, then it is `opened`.
        """
        begun, sending = self.begun, self.prepared
        if begun is None or not begun.opening.is_stream or begun.back is not None:
            return None
        if not isinstance(sending, Sending) or sending.way_back is not None:
            return None
        begun.opening.begin_stream(shape_of(sending.leg.api), self.options.keep_alive)
        return begun.opening

    def opened(self, overture: Overture) -> Delivery | None:
        """A stream has said something of its answer, or more than can be held. None where `run` is to see to that."""
        begun, sending, first = self.begun, self.prepared, overture.first
        assert begun is not None, "it was begun"
        assert isinstance(sending, Sending), "what is answered was asked"
        if overture.failure is not None or (
            first is not None and error_in(first, shape_of(sending.leg.api)) is not None
        ):
            return None
        return self._delivered(begun, sending)

    def _delivered(self, begun: Begun, sending: Sending) -> Delivery:
        self._forget()
        return self.attempts.answered(begun.opening, sending, begun.back)

    def _forget(self) -> None:
        """The question, of which what was prepared holds some as well."""
        self.placed = self.prepared = self.begun = None
        self.order.body.release()

    def close(self) -> Awaitable[None]:
        """Close whatever is still open, the destination's connection first."""
        closing = OVER if self.answer is None else self.answer.close()
        if closing is not OVER:
            return closed(closing, self._abandon)
        self._abandon()
        return OVER

    def _abandon(self) -> None:
        placing, self.placed = self.placed, None
        if placing is not None and not isinstance(placing, Placed):
            placing.close()  # the process ends before it was waited for
        ticket = self.attempts.ticket
        if ticket is not None:
            ticket.abandon()

    def note(self, answer: UpstreamAnswer, sending: Sending) -> None:
        self.record.upstream_id = upstream_id_of(answer.headers) if sending.leg.is_provider else ""

    def begin_with(self, answer: UpstreamAnswer, sending: Sending, taken: bytes | None = None) -> Begun:
        """Begin what is no error, and what is known to be here is read: `taken` was already. Raises UpstreamCut."""
        self.answer = answer
        back = self.attempts.own_way_back(sending, came=is_stream(header(answer.headers, b"content-type")))
        is_read = back is not None or sending.leg.api is not self.order.inbound.api
        self.answer = opening = Opening(answer, is_read=is_read)
        return Begun(opening, back, opening.begin_at_once(taken))


def is_success(status: int) -> bool:
    """Whether an answer is worth relaying byte by byte. A redirect is none: nobody here follows one."""
    return _SUCCESS <= status < _REDIRECT


def shape_of(api: Api) -> Api:
    """Of the events of its streams."""
    return _CHAT if api is _COMPLETIONS else api.shape
