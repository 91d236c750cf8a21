"""What a delivery is to its client, and what is told of it afterwards. Decides only: `delivery` waits."""

from typing import Final

from kinference.gateway import errors, headers
from kinference.gateway.access_log import End, Record
from kinference.gateway.array import CONTENT_TYPE, ArrayPassage, wants_array
from kinference.gateway.attempts import Delivery
from kinference.gateway.flow import Flow
from kinference.gateway.itl import LAYOUT
from kinference.gateway.options import Outside
from kinference.gateway.passage import BYTES_PER_TOKEN, Counted, EventPassage, Passage, PlainPassage
from kinference.gateway.routes import Route
from kinference.gateway.translation import TranslatedPassage
from kinference.ids import Seconds
from kinference.ports import FinalTokenReport, Headers
from kinference.shapes.answers import Frame
from kinference.shapes.translate import WayBack
from kinference.shapes.usage import Usage
from kinference.vocabulary import AbortReason
from kinference.wire.exchange import Exchange
from kinference.wire.fields import Table

WARNINGS: Final = b"x-kinference-warnings"
_NOT_BUFFERED: Final = ((b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no"))
_NOTHING_COUNTED: Final = Usage()
_CUT: Final = End.UPSTREAM_CUT
"""Read once: Python 3.11 finds a member of an enum by a hook of its metaclass, at ten times the price of a constant."""


class Answering:
    """One answer to one client: how it passes, and its accounts."""

    def __init__(self, outside: Outside, record: Record, route: Route, delivery: Delivery) -> None:
        self._clock, self._record, self.delivery = outside.clock, record, delivery
        assert route.api is not None, "what was delivered was inferred"
        self._api, self._runs_prompt = route.api, route.runs_prompt

    # --- on the way out --------------------------------------------------------------------------

    def flow(self, told: Table, exchange: Exchange) -> tuple[Flow, Headers]:
        """The answer's way to its client, and the fields that go ahead. `told` are those that came."""
        passage, head = self._passage(told, exchange)
        return Flow(exchange, passage, self._clock, self.began), head

    def _passage(self, told: Table, exchange: Exchange) -> tuple[Passage, Headers]:
        way_back = self.delivery.way_back
        is_events = headers.is_event_stream(told.get(b"content-type"))
        passage: Passage
        if way_back is not None:
            passage, head = TranslatedPassage(way_back.back, self.frame(way_back)), translated_head(way_back)
            is_events = way_back.back.is_streaming
        else:
            head = _head(self.delivery.answer.headers, told, is_events=is_events)
            if is_events and b"content-encoding" not in told:
                passage = EventPassage(self._api, hide_usage=self.delivery.hide_usage)
            else:
                passage = PlainPassage(self._api)
        if is_events and wants_array(exchange.path, exchange.query):
            return ArrayPassage(passage), as_array(head)
        return passage, head

    def frame(self, way_back: WayBack) -> Frame:
        """What the answer to a translated request has of its own."""
        back = way_back.back
        return Frame(self._record.request_id, int(self._clock.wall()), back.wants_usage, back.echo)

    # --- the accounts ----------------------------------------------------------------------------

    def began(self, now: Seconds) -> None:
        """The first of the answer is here."""
        if self._runs_prompt:
            delivery = self.delivery
            delivery.ticket.began(now - delivery.sent_at, delivery.answer.status)

    def relayed(self, flow: Flow, end: End) -> None:
        """The relay is over, however it ended."""
        self._record.end = end
        is_broken = end is _CUT
        if flow.first_byte_at is not None:
            self.came(flow.first_byte_at)
            self.account(flow.passage, broken=is_broken)
        elif is_broken:
            self.nothing_came()

    def came(self, now: Seconds) -> None:
        """The first of the answer came at this time, for the log."""
        self._record.ttft_ms = (now - self.delivery.sent_at) * 1000

    def nothing_came(self) -> None:
        """The destination promised an answer by its head, and broke off: that is a failure of its own."""
        delivery = self.delivery
        if self._runs_prompt:
            delivery.ticket.began(self._clock.now() - delivery.sent_at, errors.UPSTREAM_BROKEN.status)
        delivery.ticket.abort(AbortReason.UNSPECIFIED, "the destination broke its answer off")

    def account(self, passage: Counted, *, broken: bool = False) -> None:
        """Report what the answer came to."""
        record, ticket = self._record, self.delivery.ticket
        if not self._runs_prompt:
            ticket.abort(AbortReason.NOT_DISPATCHED, "answered without running the prompt")
            return
        usage, gaps = passage.usage() or _NOTHING_COUNTED, passage.gaps()
        prompt, completion = usage.prompt_tokens, usage.completion_tokens
        record.usage_estimated = prompt is None or completion is None
        record.prompt_tokens = self.delivery.body_bytes // BYTES_PER_TOKEN if prompt is None else prompt
        record.completion_tokens = passage.estimated_tokens() if completion is None else completion
        record.cached_tokens = usage.cached_tokens
        report = FinalTokenReport(
            response_id=ticket.response_id,
            model=usage.model or record.model,
            prompt_tokens=record.prompt_tokens,
            completion_tokens=record.completion_tokens,
            cached_tokens=record.cached_tokens,
            itl_bucket_counts=gaps,
            itl_bucket_layout=LAYOUT if gaps else 0,
            broken=broken,
        )
        ticket.complete(report)


def _head(received: Headers, told: Table, *, is_events: bool) -> Headers:
    fields = headers.to_client(received)
    if is_events:
        return (*fields, *_NOT_BUFFERED)
    length = told.get(b"content-length")
    return fields if length is None else (*fields, (b"content-length", length))


def translated_head(way_back: WayBack) -> Headers:
    """The fields of an answer that was translated."""
    kind = b"text/event-stream; charset=utf-8" if way_back.back.is_streaming else b"application/json"
    fields = ((b"content-type", kind), *(_NOT_BUFFERED if way_back.back.is_streaming else ()))
    return (*fields, (WARNINGS, way_back.warnings.encode())) if way_back.warnings else fields


def as_array(head: Headers) -> Headers:
    """The fields of a stream whose events are told as one array."""
    return [CONTENT_TYPE if field[0] == CONTENT_TYPE[0] else field for field in head]
