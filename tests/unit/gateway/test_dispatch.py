"""A request as far as it goes without waiting; where it has to wait is in test_search."""

import gzip
from collections.abc import Awaitable

import pytest

from kinference.errors import UpstreamUnreachable
from kinference.gateway.access_log import Record
from kinference.gateway.attempts import Delivery, Order
from kinference.gateway.auth import Caller
from kinference.gateway.backends import Inbound
from kinference.gateway.dispatch import Dispatch, is_success
from kinference.gateway.held_body import BodyLimits, HeldBody
from kinference.gateway.options import GatewayOptions
from kinference.ports import Headers
from kinference.vocabulary import AbortReason, Api
from kinference.wire.over import OVER
from tests.unit.gateway.fakes import EVENTS, JSON, FakeAnswer, FakeExchange, Instant, World

CHAT = "/v1/chat/completions"
BODY = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
STREAMING = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'


class Arrived(FakeExchange):
    """Came in one read."""

    def arrived(self) -> bytes | None:
        return b"".join(self._body)


class Whole(FakeAnswer):
    """Has come in one read. Tells how often it was asked for."""

    def __init__(self, body: bytes, headers: Headers = JSON, status: int = 200) -> None:
        super().__init__(status, headers, ())
        self._body: bytes | None = body

    def arrived(self) -> bytes | None:
        body, self._body = self._body, b""
        return body

    def close(self) -> Awaitable[None]:  # type: ignore[override] # at once
        self.is_closed = True
        return OVER


def asked(body: bytes = BODY) -> tuple[Dispatch, World]:
    """One that has been sent to an engine."""
    world = World(Instant())
    inbound = Inbound(CHAT, "", (), "req_1", Api.OPENAI_CHAT)
    order = Order(Caller(), inbound, HeldBody(BodyLimits(1 << 20, 30.0), world.picker))
    dispatch = Dispatch(world.outside, GatewayOptions(), Record("req_1", CHAT, 100.0), order)
    assert dispatch.begin(Arrived(CHAT, (body,))) is not None
    return dispatch, world


def test_a_json_answer_that_is_all_here_goes_out_as_it_came() -> None:
    dispatch, _ = asked()
    answer = Whole(b'{"a":1}')
    delivery = dispatch.take_up(answer)
    assert delivery is not None
    assert (delivery.answer, delivery.whole, delivery.told) == (answer, b'{"a":1}', dict(JSON))
    assert dispatch.order.body.whole == b""


@pytest.mark.parametrize("body", [b' {"a":1}', b'\xef\xbb\xbf{"a":1}', gzip.compress(b'{"a":1}')])
async def test_one_that_has_something_before_it_or_is_packed_is_looked_into_and_loses_nothing(body: bytes) -> None:
    dispatch, _ = asked()
    delivery = dispatch.take_up(Whole(body))
    assert delivery is not None
    assert delivery.whole is None
    came = delivery.answer.arrived()
    assert came == (b'{"a":1}' if body.startswith(b"\x1f") else body)


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (Whole(b""), BODY),
        (Whole(b"<html>"), BODY),
        (Whole(b"data: [DONE]\n\n", EVENTS), STREAMING),
        (Whole(b"{}", status=429), BODY),
        (Whole(b"{}", status=302), BODY),
        (FakeAnswer(), BODY),
    ],
)
def test_what_is_no_whole_answer_is_left_to_be_searched_on(answer: FakeAnswer, body: bytes) -> None:
    dispatch, _ = asked(body)
    assert dispatch.take_up(answer) is None
    assert dispatch.order.body.whole == body


def test_an_answer_of_the_other_kind_than_asked_for_is_brought_into_it() -> None:
    dispatch, world = asked(STREAMING)
    assert world.picker.pushed == [STREAMING]
    said = b'{"id":"1","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant"}}]}'
    delivery = dispatch.take_up(Whole(said))
    assert isinstance(delivery, Delivery)
    assert delivery.whole is None
    assert delivery.way_back is not None


def test_a_destination_that_failed_is_left_to_be_searched_on() -> None:
    dispatch, _ = asked()
    assert dispatch.take_up(UpstreamUnreachable("http://10.0.0.1:8000 refused the connection")) is None


def test_closing_closes_the_answer_and_the_ticket() -> None:
    dispatch, world = asked()
    answer = Whole(b"{}")
    dispatch.take_up(answer)
    assert dispatch.close() is OVER
    assert answer.is_closed
    assert [reason for _, reason in world.picker.aborted] == [AbortReason.UNSPECIFIED]


@pytest.mark.parametrize(("status", "relayed"), [(200, True), (299, True), (199, False), (302, False), (400, False)])
def test_only_2xx_is_relayed_byte_by_byte(status: int, *, relayed: bool) -> None:
    assert is_success(status) is relayed
