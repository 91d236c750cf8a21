import pytest

from kinference.gateway.access_log import Record
from kinference.gateway.own_fields import own_fields
from kinference.gateway.routes import Dialect
from kinference.ports import Allowance, PickResult
from kinference.vocabulary import Outcome
from tests.unit.gateway.fakes import ManualClock


def made() -> tuple[Record, ManualClock]:
    clock = ManualClock()
    clock.time = 100.0025
    return Record("req_1", "/v1/x", 100.0), clock


def test_an_answer_is_noted_by_its_status_and_its_overhead() -> None:
    record, clock = made()
    fields = dict(own_fields(record, Dialect.OPENAI, clock, 201))
    assert fields == {b"x-request-id": b"req_1", b"x-kinference-overhead-ms": b"2.500"}
    assert record.status == 201
    assert record.overhead_ms == pytest.approx(2.5)


def test_the_endpoint_is_named_once_there_is_one() -> None:
    record, clock = made()
    record.endpoint = "10.0.0.1:8000"
    assert (b"x-kinference-endpoint", b"10.0.0.1:8000") in own_fields(record, Dialect.OPENAI, clock, 200)


def test_anthropics_clients_find_the_id_under_their_name() -> None:
    record, clock = made()
    assert (b"request-id", b"req_1") in own_fields(record, Dialect.ANTHROPIC, clock, 200)


def test_what_is_left_of_a_tenants_limits_is_told_where_there_are_any() -> None:
    record, clock = made()
    record.picked = PickResult(Outcome.OK)
    assert not [name for name, _ in own_fields(record, Dialect.OPENAI, clock, 200) if b"ratelimit" in name]
    record.picked = PickResult(Outcome.OK, requests=Allowance(60, 59, 1.0))
    assert (b"x-ratelimit-remaining-requests", b"59") in own_fields(record, Dialect.OPENAI, clock, 200)


def test_a_providers_own_id_is_told_beside_ours() -> None:
    record, clock = made()
    record.upstream_id = "req_theirs"
    fields = own_fields(record, Dialect.OPENAI, clock, 200)
    assert (b"x-kinference-upstream-request-id", b"req_theirs") in fields
    assert (b"x-request-id", b"req_1") in fields
