"""Whatever a caller says, the picker's side reads the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinference.ids import Address, ObjectRef, ResponseId, StreamId
from kinference.picker import caller, convert
from kinference.ports import (
    Allowance,
    FinalTokenReport,
    FirstTokenReport,
    LocalTarget,
    PickArguments,
    PickResult,
    ProviderTarget,
    PushMetadata,
)
from kinference.vocabulary import AbortReason, Loss, Outcome, QosClass
from kinference.wire.proto import picker_pb2 as pb

NUMBERS = st.integers(0, 2**32 - 1)
IDS = st.integers(1, 2**64 - 1)
WORDS = st.text("abcxyz-.", min_size=1, max_size=20)
REFS = st.builds(ObjectRef, WORDS, WORDS)
TARGETS = st.one_of(st.builds(LocalTarget, WORDS), st.builds(ProviderTarget, REFS))
ARGUMENTS = st.builds(
    PickArguments,
    stream_id=IDS,
    tenant=st.text(st.characters(codec="utf-8"), max_size=20),
    client_request_id=WORDS,
    pool=st.none() | REFS,
    qos=st.sampled_from(QosClass),
    request_path=st.just("") | WORDS.map("/{}".format),
    translates=st.booleans(),
    loss=st.sampled_from(Loss),
    failed=st.frozensets(TARGETS, max_size=4),
)
FINALS = st.builds(
    FinalTokenReport,
    response_id=IDS,
    model=WORDS,
    prompt_tokens=NUMBERS,
    completion_tokens=NUMBERS,
    cached_tokens=st.none() | NUMBERS,
    itl_bucket_counts=st.lists(NUMBERS, max_size=15).map(tuple),
    itl_bucket_layout=NUMBERS,
    broken=st.booleans(),
)


@given(ARGUMENTS)
def test_a_pick_arrives_as_it_was_asked(arguments: PickArguments) -> None:
    request, fields = caller.pick_request(arguments)
    assert convert.pick_arguments(request.SerializeToString(), fields, 512) == arguments


@given(FINALS)
def test_a_final_report_arrives_as_it_was_made(report: FinalTokenReport) -> None:
    request, fields = caller.final_token_request(report)
    assert convert.final_token_report(request.SerializeToString(), fields) == report


@given(IDS, NUMBERS, st.integers(-1, 999))
def test_a_first_report_arrives_as_it_was_made(response_id: int, ttft: int, status: int) -> None:
    report = FirstTokenReport(ResponseId(response_id), ttft, status)
    assert convert.first_token_report(caller.first_token_request(report).SerializeToString()) == report


@given(IDS, st.sampled_from(AbortReason), WORDS)
def test_an_abort_arrives_as_it_was_made(response_id: int, reason: AbortReason, detail: str) -> None:
    request = caller.abort_request(ResponseId(response_id), reason, detail, "req")
    assert convert.abort_arguments(request.SerializeToString()) == (response_id, reason, detail)


@given(st.one_of(st.none(), TARGETS), st.sampled_from(Outcome), IDS)
def test_a_result_is_read_as_it_was_written(
    destination: LocalTarget | ProviderTarget | None, outcome: Outcome, response_id: int
) -> None:
    result = PickResult(outcome, "why", "m", destination, ResponseId(response_id), 7)
    assert caller.pick_result(pb.PickResponse.FromString(convert.pick_response(result))) == result


def test_a_push_says_its_length_and_id_where_they_are_known() -> None:
    fields = caller.push_fields(PushMetadata("r-1", 0))
    assert convert.declared_length(fields) == 0
    assert dict(fields)[convert.CLIENT_REQUEST_ID] == "r-1"
    assert caller.push_fields(PushMetadata()) == ()


def test_what_a_message_cannot_carry_is_cut_to_what_it_can() -> None:
    report = FinalTokenReport(ResponseId(1), "\ud800", 2**40, 2**40, 2**40)
    request, _ = caller.final_token_request(report)
    assert (request.model, request.prompt_tokens, request.cached_tokens) == ("?", 2**32 - 1, 2**32 - 1)
    first = caller.first_token_request(FirstTokenReport(ResponseId(1), 2**40, 200))
    assert first.observed_ttft_ms == 2**32 - 1
    assert caller.abort_request(ResponseId(1), AbortReason.PULL_FAILED, "\udfff", "").detail == "?"


def test_a_pushed_body_keeps_its_numbers() -> None:
    told = caller.pushed_body(pb.PushBodyResponse(stream_id=9, total_bytes=8))
    assert (told.stream_id, told.total_bytes) == (StreamId(9), 8)


def test_an_address_keeps_its_brackets() -> None:
    local = PickResult(Outcome.OK, destination=LocalTarget(Address("[::1]:8000")), response_id=ResponseId(1))
    assert caller.pick_result(pb.PickResponse.FromString(convert.pick_response(local))) == local


@pytest.mark.parametrize(
    ("reason", "retry_after"),
    [
        ("quota: tenant 'a' is at its requests_per_minute of 9; try again in 12.5 s", 12.5),
        ("saturated: try again in 3 s", 3.0),
        ("quota: tenant 'a' is at its concurrent of 9; try again when a request of its own has ended", None),
        ("policy: tenant 'try again in 5 s' may not", None),
    ],
)
def test_when_a_refusal_may_be_over_is_read_from_its_reason(reason: str, retry_after: float | None) -> None:
    response = pb.PickResponse(outcome=Outcome.POLICY_REJECTED.value, reason=reason)  # type: ignore[arg-type] # as the stubs name it
    assert caller.pick_result(response).retry_after == retry_after


@given(limit=st.integers(1, 10**12), remaining=st.integers(-9, 10**12), full_in=st.floats(-1.0, 1e6))
def test_what_is_left_of_limits_travels_beside_the_answer(limit: int, remaining: int, full_in: float) -> None:
    left = Allowance(limit, remaining, full_in)
    result = PickResult(Outcome.POLICY_REJECTED, "quota", "m", requests=left)
    read = caller.pick_result(pb.PickResponse.FromString(convert.pick_response(result)), convert.pick_fields(result))
    assert read.requests is not None
    assert (read.requests.limit, read.requests.remaining) == (limit, max(remaining, 0))
    assert read.requests.full_in == pytest.approx(max(full_in, 0.0), abs=1e-3)
    assert read.tokens is None


@pytest.mark.parametrize(
    "text", ["", "1 2", "1 2 x", "-1 2 3.0", "1 2 3", "1" * 30 + " 2 3.0", "1 2 3.0 4", b"1 2 3.0"]
)
def test_what_makes_no_sense_beside_an_answer_is_passed_over(text: str | bytes) -> None:
    response = pb.PickResponse(outcome=1)  # type: ignore[arg-type] # the stubs type an enum's numbers by their own names
    read = caller.pick_result(response, [(convert.LEFT_TOKENS, text), ("x", "y")])
    assert (read.requests, read.tokens) == (None, None)
