import json
from collections.abc import Iterator

import pytest

from kinference import errors as vocabulary
from kinference.errors import KinferenceError
from kinference.gateway import errors
from kinference.gateway.errors import Refusal
from kinference.gateway.routes import Dialect
from kinference.ports import PickResult
from kinference.vocabulary import Outcome


def family(kind: type[KinferenceError]) -> Iterator[type[KinferenceError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from family(child)


def test_the_table_covers_every_failure_of_the_vocabulary() -> None:
    missing = [kind for kind in family(KinferenceError) if kind.__module__ == "kinference.errors"]
    assert set(missing) - set(errors.OF_ERROR) == set()


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (vocabulary.BudgetExceeded("big"), 413),
        (vocabulary.IdleTimeout("slow"), 408),
        (vocabulary.Draining("bye"), 503),
        (vocabulary.UnknownId("gone"), 503),
        (vocabulary.UpstreamUnreachable("down"), 502),
        (vocabulary.UpstreamTimeout("hung"), 504),
        (vocabulary.InvalidArgument("us"), 500),
    ],
)
def test_a_failure_becomes_its_status(error: KinferenceError, status: int) -> None:
    assert errors.refusal_of(error).fault.status == status


def test_a_retry_later_carries_its_time_in_whole_seconds_rounded_up() -> None:
    refusal = errors.refusal_of(vocabulary.RetryLater("full", 2.2))
    assert refusal.fault.status == 503
    assert errors.headers(refusal) == ((b"retry-after", b"3"),)


def test_an_overload_without_a_time_still_says_when_to_come_back() -> None:
    assert errors.headers(Refusal(errors.OVERLOADED, "busy")) == ((b"retry-after", b"1"),)


def test_a_fault_that_stays_has_no_retry_after() -> None:
    assert errors.headers(Refusal(errors.BAD_REQUEST, "no")) == ()


@pytest.mark.parametrize(
    ("outcome", "reason", "status", "code"),
    [
        (Outcome.BAD_REQUEST, "not JSON", 400, None),
        (Outcome.NO_WORKERS, "none ready", 503, "overloaded"),
        (Outcome.NO_WORKERS, "needs: 2 lacking vision", 400, "unsupported_capability"),
        (Outcome.POLICY_REJECTED, "policy: not yours", 403, None),
        (Outcome.POLICY_REJECTED, "quota: used up", 429, "rate_limit_exceeded"),
        (Outcome.POLICY_REJECTED, "quota: budget: spent", 429, "insufficient_quota"),
        (Outcome.POLICY_REJECTED, "saturated: later", 429, "rate_limit_exceeded"),
        (Outcome.POLICY_REJECTED, "because", 403, None),
        (Outcome.UNSPECIFIED, "", 500, "internal_error"),
    ],
)
def test_a_refused_pick_becomes_its_status(outcome: Outcome, reason: str, status: int, code: str | None) -> None:
    refusal = errors.refusal_of_pick(PickResult(outcome, reason, "m"), model_known=True)
    assert (refusal.fault.status, refusal.fault.code) == (status, code)


def test_no_worker_for_a_model_that_nobody_knows_is_not_found() -> None:
    refusal = errors.refusal_of_pick(PickResult(Outcome.NO_WORKERS, "", "gpt-9"), model_known=False)
    assert (refusal.fault.status, refusal.fault.code) == (404, "model_not_found")
    assert "gpt-9" in refusal.message


def test_openai_clients_read_an_openai_error() -> None:
    body = json.loads(errors.body(Refusal(errors.TOO_LARGE, "too big"), Dialect.OPENAI, "req_1"))
    assert body == {
        "error": {"message": "too big", "type": "invalid_request_error", "param": None, "code": "request_too_large"}
    }


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (errors.TOO_LARGE, "request_too_large"),
        (errors.UNKNOWN_MODEL, "not_found_error"),
        (errors.OVERLOADED, "overloaded_error"),
        (errors.UPSTREAM_AUTH, "api_error"),
        (errors.FORBIDDEN, "permission_error"),
        (errors.TIMEOUT, "timeout_error"),
    ],
)
def test_anthropic_clients_read_an_anthropic_error(fault: errors.Fault, kind: str) -> None:
    body = json.loads(errors.body(Refusal(fault, "why"), Dialect.ANTHROPIC, "req_1"))
    assert body == {"type": "error", "error": {"type": kind, "message": "why"}, "request_id": "req_1"}


@pytest.mark.parametrize(
    ("status", "kind"), [(400, "invalid_request_error"), (418, "invalid_request_error"), (500, "server_error")]
)
def test_a_bare_status_keeps_its_number(status: int, kind: str) -> None:
    fault = errors.of_status(status)
    assert (fault.status, fault.type) == (status, kind)


def test_gemini_clients_read_the_status_in_words() -> None:
    refusal = Refusal(errors.RATE_LIMITED, "slow down")
    body = json.loads(errors.body(refusal, Dialect.GEMINI, "req_1"))
    assert body == {"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}}


def test_a_quota_says_when_it_is_over() -> None:
    refusal = errors.refusal_of_pick(
        PickResult(Outcome.POLICY_REJECTED, "quota: used up", retry_after=12.2), model_known=True
    )
    assert errors.headers(refusal) == ((b"retry-after", b"13"),)
