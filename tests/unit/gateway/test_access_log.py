import logging

import pytest

from kinference.gateway import access_log
from kinference.gateway.access_log import End, Record
from kinference.observe.metrics import Metrics


def record() -> Record:
    made = Record("req_1", "/v1/messages", accepted_at=100.0)
    made.api, made.tenant, made.model, made.endpoint = "anthropic_messages", "acme", "m", "10.0.0.1:8000"
    made.status, made.end, made.reason, made.attempts = 200, End.OK, "why", 2
    made.upstream_s, made.ttft_ms = 0.5, 20.04
    made.prompt_tokens, made.completion_tokens, made.cached_tokens = 7, 3, 4
    return made


def test_a_request_is_one_line_with_its_fields(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "kinference.gateway"):
        access_log.write(record(), 102.0, Metrics())
    (line,) = caplog.records
    assert line.name == "kinference.gateway"
    assert line.getMessage() == "/v1/messages 200 ok in 2000 ms"
    fields = vars(line)
    assert {name: fields[name] for name in ("request_id", "tenant", "model", "endpoint", "reason", "outcome")} == {
        "request_id": "req_1",
        "tenant": "acme",
        "model": "m",
        "endpoint": "10.0.0.1:8000",
        "reason": "why",
        "outcome": "ok",
    }
    assert (fields["ttft_ms"], fields["duration_ms"], fields["cached_tokens"]) == (20.0, 2000.0, 4)
    assert fields["attempts"] == 2


def test_a_request_is_counted_with_its_tokens() -> None:
    metrics = Metrics()
    access_log.write(record(), 102.0, metrics)
    page = metrics.exposition().decode()
    assert 'kinference_gateway_requests_total{api="anthropic_messages",outcome="ok",status="200"} 1.0' in page
    assert 'kinference_gateway_tokens_total{kind="prompt"} 7.0' in page
    assert 'kinference_gateway_tokens_total{kind="cached"} 4.0' in page
    assert "kinference_gateway_time_to_first_token_seconds_count 1.0" in page


def test_an_answer_without_a_first_byte_does_not_count_as_an_instant_one() -> None:
    metrics, refused = Metrics(), record()
    refused.ttft_ms = None
    access_log.write(refused, 102.0, metrics)
    assert "kinference_gateway_time_to_first_token_seconds_count 0.0" in metrics.exposition().decode()


def test_our_own_time_is_all_but_the_wait_for_destinations() -> None:
    measured = record()
    assert measured.set_overhead(100.75) == 250.0
    assert measured.set_overhead(100.1) == 0.0
    assert measured.overhead_ms == 0.0


def test_a_client_that_left_before_the_head_counts_as_499_and_teaches_nothing_of_our_time() -> None:
    metrics, left = Metrics(), Record("req_1", "/v1/messages", accepted_at=100.0)
    left.client_left()
    access_log.write(left, 101.0, metrics)
    page = metrics.exposition().decode()
    assert 'kinference_gateway_requests_total{api="",outcome="client_closed",status="499"} 1.0' in page
    assert "kinference_gateway_overhead_seconds_count 0.0" in page


def test_a_client_that_left_mid_answer_keeps_its_status() -> None:
    left = record()
    left.end = End.INTERNAL  # as long as nothing else is known
    left.client_left()
    assert (left.status, left.end) == (200, End.CLIENT_CLOSED)


def test_a_client_that_leaves_with_its_whole_answer_was_served() -> None:
    served = record()
    served.client_left()
    assert (served.status, served.end) == (200, End.OK)
