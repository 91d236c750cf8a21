import json

import pytest

from kinference.gateway import errors
from kinference.gateway.access_log import End, Record
from kinference.gateway.errors import Refusal
from kinference.gateway.reply import Reply
from kinference.gateway.routes import Dialect
from kinference.gateway.verdict import ErrorAnswer
from kinference.ports import Allowance, PickResult
from kinference.vocabulary import Outcome
from tests.unit.gateway.fakes import JSON, FakeExchange, ManualClock


def reply(dialect: Dialect = Dialect.OPENAI) -> tuple[Reply, FakeExchange, Record]:
    exchange, record, clock = FakeExchange("/v1/x"), Record("req_1", "/v1/x", 100.0), ManualClock()
    clock.time = 100.0025
    return Reply(exchange, dialect, record, clock), exchange, record


async def test_every_answer_names_its_request_and_our_own_time() -> None:
    answering, exchange, record = reply()
    record.endpoint = "10.0.0.1:8000"
    await answering.start(200, JSON)
    assert exchange.sent_headers == (
        *JSON,
        (b"x-request-id", b"req_1"),
        (b"x-kinference-overhead-ms", b"2.500"),
        (b"x-kinference-endpoint", b"10.0.0.1:8000"),
    )
    assert record.status == 200


async def test_a_refusal_is_whole_and_in_the_clients_dialect() -> None:
    answering, exchange, record = reply(Dialect.ANTHROPIC)
    await answering.refuse(Refusal(errors.OVERLOADED, "busy", 4.0), (b"allow", b"POST"))
    assert exchange.status == 503
    assert exchange.is_finished
    assert exchange.field(b"retry-after") == b"4"
    assert exchange.field(b"request-id") == b"req_1"
    assert exchange.field(b"allow") == b"POST"
    assert exchange.field(b"content-length") == str(len(exchange.answer)).encode()
    assert json.loads(exchange.answer)["error"]["type"] == "overloaded_error"
    assert (record.end, record.reason) == (End.REFUSED, "busy")


async def test_an_error_after_an_attempt_is_the_destinations() -> None:
    answering, _, record = reply()
    record.attempts = 1
    await answering.refuse(Refusal(errors.UPSTREAM_BROKEN, "the destination could not be reached"))
    assert (record.status, record.end) == (502, End.UPSTREAM_ERROR)


async def test_a_destinations_error_is_passed_on_byte_for_byte() -> None:
    answering, exchange, record = reply()
    await answering.pass_on(ErrorAnswer(422, JSON, b'{ "detail":1.0 }'))
    assert (exchange.status, exchange.answer, exchange.is_finished) == (422, b'{ "detail":1.0 }', True)
    assert record.end is End.UPSTREAM_ERROR


async def test_an_answer_of_our_own_is_json() -> None:
    answering, exchange, record = reply()
    await answering.json(b"{}")
    assert (exchange.status, exchange.field(b"content-type"), exchange.answer) == (200, b"application/json", b"{}")
    assert record.end is End.OK


async def test_an_answer_tells_what_is_left_of_the_tenants_limits() -> None:
    answering, exchange, record = reply()
    record.picked = PickResult(Outcome.OK, requests=Allowance(60, 59, 1.0))
    await answering.start(200, JSON)
    assert exchange.field(b"x-ratelimit-remaining-requests") == b"59"


@pytest.mark.parametrize(("status", "told"), [(429, b"false"), (503, b"false"), (400, None)])
async def test_clients_do_not_try_again_what_was_tried_elsewhere(status: int, told: bytes | None) -> None:
    for attempts in (1, 2):
        answering, exchange, record = reply()
        record.attempts = attempts
        head = (*JSON, (b"x-should-retry", b"true"))
        await answering.pass_on(ErrorAnswer(status, head, b"{}"))
        fields = [value for name, value in exchange.sent_headers if name == b"x-should-retry"]
        assert fields == [told if told and attempts > 1 else b"true"]
        answering, exchange, record = reply()
        record.attempts = attempts
        await answering.refuse(Refusal(errors.of_status(status), "no"))
        fields = [value for name, value in exchange.sent_headers if name == b"x-should-retry"]
        assert fields == ([told] if told and attempts > 1 else [])
